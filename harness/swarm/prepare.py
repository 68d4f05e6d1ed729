"""Everything that is looked up and checked before a run: scenario, targets, engines, exact lengths, context."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.engines.base import Identity
from harness.engines.detect import connect, identify
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target, resolve_targets
from harness.errors import InputError, TargetError
from harness.swarm.options import RunOptions, scenarios_folder
from harness.workload.change import changed
from harness.workload.learning import learn
from harness.workload.lexicon import Lexicon
from harness.workload.pressure import solve_pressure
from harness.workload.scenario import Scenario, load_scenario
from harness.workload.schedule import sessions_before
from harness.workload.words import CANDIDATES
from harness.workload.workload import Workload

logger = logging.getLogger(__name__)

USERS = 4
"""How many users a closed loop starts if nobody says how many."""
SEATS = 1000
"""How many sessions an open loop lets live at a time on each target if nobody says how many."""
STAGGERED = 10_000
"""As many sessions that began before the load does are looked at, at most."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One target of a run, and what was learnt of it."""

    target: Target
    engine: OpenAIEngine
    identity: Identity
    lexicon: Lexicon

    @property
    def slots(self) -> int | None:
        """How many slots users are dealt out to; None: the server chooses."""
        return self.identity.slots if self.target.pin_slots else None


@dataclass(frozen=True, slots=True)
class Preparation:
    """A run that can begin."""

    options: RunOptions
    run_id: str
    nonce: str
    """What no other run has."""
    scenario: Scenario
    lanes: tuple[Lane, ...]

    @property
    def legs(self) -> tuple[tuple[Lane, ...], ...]:
        """The targets that are loaded at the same time, in the order of their turns."""
        return (self.lanes,) if self.options.together else tuple((lane,) for lane in self.lanes)

    @property
    def users(self) -> int:
        """How many users are to be started."""
        if self.options.load == "open":
            return self.options.users or SEATS * len(self.legs[0])
        return self.options.users or _running_users(self.scenario, self.legs) or USERS

    @property
    def ramps(self) -> bool:
        """Whether users are started little by little: Locust starts as many as its spawn rate at once."""
        spawn_rate = self.options.spawn_rate
        return self.users > (1 if spawn_rate is None else spawn_rate) and not self._starts_all_at_once

    @property
    def _starts_all_at_once(self) -> bool:
        return self.options.load == "open" and self.options.spawn_rate is None


def prepare(options: RunOptions) -> Preparation:
    """Ask the targets all that the run needs to know. Sends no measured request; changes no cache on purpose.

    Raises InputError (with one sentence) if the run cannot be made.
    """
    folder = scenarios_folder()
    scenario = changed(load_scenario(options.scenario, folder), options.changes)
    targets = resolve_targets(options.target, folder / "targets")
    if len(targets) > 1 and not options.together and options.run_time_s is None:
        raise InputError(
            f"{len(targets)} targets one after the other need a run time, which each of them gets: give --run-time "
            "(in the form: Run time), or --together to load them at the same time."
        )
    if options.model:
        targets = tuple(target.model_copy(update={"model": options.model}) for target in targets)
    engines = [connect(target) for target in targets]
    identities = [_identity(engine, options) for engine in engines]
    scenario = solve_pressure(scenario, _least_capacity(identities))
    lexicons = _lexicons(engines, scenario)
    lanes = tuple(
        Lane(engine.target, engine, identity, lexicon)
        for engine, identity, lexicon in zip(engines, identities, lexicons, strict=True)
    )
    for lane in lanes:
        _check_context(scenario, lane)
    run_id = options.run_id or f"{time.strftime('%Y%m%d-%H%M%S')}-{scenario.name}"
    # A run may have the name of one elsewhere, whose texts the servers have seen.
    made = Preparation(options, run_id, f"{run_id}-{secrets.token_hex(4)}", scenario, lanes)
    _check_load(made)
    running = _running_users(scenario, made.legs)
    if options.load == "closed" and running and made.users != running:
        raise InputError(
            f"Scenario {scenario.name} has {scenario.running_sessions} running sessions"
            f"{' on each target' if len(made.legs[0]) > 1 else ''}, but {made.users} users were asked for: start "
            f"{running} users."
        )
    return made


def _check_load(made: Preparation) -> None:
    """Whether sessions can arrive as they are to, and be under way at first."""
    options, scenario = made.options, made.scenario
    if options.stagger and scenario.kind == "replay":
        raise InputError(
            f"Scenario {scenario.name} replays a trace, whose sessions begin at its times: leave out stagger."
        )
    if options.load == "closed":
        return
    workload = Workload(scenario, "")
    if options.rate is None and workload.session(0).starts_s is None:
        raise InputError(
            f"Sessions are to arrive at the times of a trace, but scenario {scenario.name} has none: take a replay of "
            "a trace that has times, or other arrivals and a rate."
        )
    if scenario.running_sessions is not None:
        raise InputError(
            f"Scenario {scenario.name} keeps {scenario.running_sessions} sessions running, as an open loop does not: "
            "take a closed one, or a scenario without running_sessions and pressure."
        )
    before = sessions_before(workload, options.rate) if options.stagger and options.rate is not None else 0
    if before > STAGGERED:
        raise InputError(
            f"stagger would have to look at {before} sessions that began before the load, as scenario {scenario.name} "
            f"can pause for long; {STAGGERED} is the limit: make its longest pauses shorter, or leave out stagger."
        )
    if made.ramps:
        raise InputError(
            f"In an open loop users are seats for sessions, all of them there from the start: make the spawn rate (in "
            f"the form: Ramp up) {made.users} or more, or the users fewer."
        )


def _running_users(scenario: Scenario, legs: Sequence[Sequence[Lane]]) -> int | None:
    """How many users keep that many sessions running on each target at once; None: the scenario does not say."""
    return None if scenario.running_sessions is None else scenario.running_sessions * len(legs[0])


def _least_capacity(identities: Sequence[Identity]) -> int | None:
    """Of the targets whose capacity is known, in tokens: pressure is then as asked there, and less at the others."""
    return min((each.capacity_tokens for each in identities if each.capacity_tokens is not None), default=None)


def _identity(engine: OpenAIEngine, options: RunOptions) -> Identity:
    identity = identify(engine)
    name = engine.target.name
    who = " ".join(filter(None, (identity.engine, identity.version)))
    logger.info("kvswarm: %s is %s, serves %s", name, who, identity.model)
    if options.cold_start == "salt" and not engine.takes_cache_salt:
        raise TargetError(f"Target {name}: {identity.engine} knows no cache salt; use --cold-start nonce")
    if engine.target.pin_slots and not engine.pins_slots:
        raise TargetError(f"Target {name}: {identity.engine} has no slots to pin; remove pin_slots")
    if engine.target.pin_slots and identity.slots is None:
        raise TargetError(
            f"Target {name} does not tell its number of slots: give it in the target file, identity.slots"
        )
    return identity


def _lexicons(engines: Sequence[OpenAIEngine], scenario: Scenario) -> list[Lexicon]:
    """One for each target, of the same words if their tokenisers share enough: then all of them get the same text."""
    lexicons: list[Lexicon] = []
    candidates: Sequence[str] = CANDIDATES
    for engine in engines:
        lexicons.append(_learn(engine, scenario, candidates))
        candidates = lexicons[-1].words
    return [
        lexicon if lexicon.words == candidates else _learn(engine, scenario, candidates)
        for engine, lexicon in zip(engines, lexicons, strict=True)
    ]


def _learn(engine: OpenAIEngine, scenario: Scenario, candidates: Sequence[str]) -> Lexicon:
    return learn(engine.count_text, engine.count_chat, engine.chat_tokens, scenario, candidates)


def _check_context(scenario: Scenario, lane: Lane) -> None:
    longest = Workload(scenario, "").longest_request_tokens(lane.lexicon.template)
    context = lane.identity.context_tokens
    if context is not None and longest > context:
        raise TargetError(
            f"The context of {lane.identity.model} is too small: a request of scenario {scenario.name} can take "
            f"{longest} tokens (prompt and answer), {lane.target.name} allows {context}; shorten the scenario, or "
            "start the server with more context."
        )


def results_base(options: RunOptions) -> str:
    """The results directory as an absolute path, so that workers with another current directory find it."""
    return options.results if "://" in options.results else str(Path(options.results).resolve())
