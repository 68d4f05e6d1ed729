"""Everything that is looked up and checked before a run: scenario, target, engine, exact lengths, context."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path

from harness.engines.base import Identity
from harness.engines.detect import connect
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target, resolve_target
from harness.errors import TargetError
from harness.swarm.options import RunOptions, scenarios_folder
from harness.workload.learning import learn
from harness.workload.lexicon import Lexicon
from harness.workload.scenario import Scenario, load_scenario
from harness.workload.workload import Workload

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Preparation:
    """A run that can begin."""

    options: RunOptions
    run_id: str
    scenario: Scenario
    target: Target
    engine: OpenAIEngine
    identity: Identity
    lexicon: Lexicon
    nonce: str
    cold_start: str
    """How the run begins cold, in words."""


def prepare(options: RunOptions) -> Preparation:
    """Ask the target all that the run needs to know. Sends no measured request; changes the cache only if asked to.

    Raises InputError (with one sentence) if the run cannot be made.
    """
    folder = scenarios_folder()
    scenario = load_scenario(options.scenario, folder)
    target = resolve_target(options.target, folder / "targets")
    if options.model:
        target = target.model_copy(update={"model": options.model})
    engine = connect(target)
    identity = engine.identify()
    logger.info("kvswarm: %s %s serves %s", identity.engine, identity.version or "", identity.model)
    lexicon = learn(engine.count_text, engine.count_chat, engine.chat_tokens, scenario)
    _check_context(scenario, lexicon, identity)
    run_id = options.run_id or f"{time.strftime('%Y%m%d-%H%M%S')}-{scenario.name}"
    nonce, cold_start = _cold_start(options.cold_start, run_id, engine)
    return Preparation(options, run_id, scenario, target, engine, identity, lexicon, nonce, cold_start)


def _check_context(scenario: Scenario, lexicon: Lexicon, identity: Identity) -> None:
    longest = Workload(scenario, "").longest_request_tokens(lexicon.template)
    if identity.context_tokens is not None and longest > identity.context_tokens:
        raise TargetError(
            f"The context of {identity.model} is too small: a request of scenario {scenario.name} can take {longest} "
            f"tokens (prompt and answer), the server allows {identity.context_tokens}; shorten the scenario, or start "
            "the server with more context."
        )


def _cold_start(how: str, run_id: str, engine: OpenAIEngine) -> tuple[str, str]:
    """(nonce, what was done)."""
    if how == "none":
        return "", "none: the cache may hold texts of earlier runs with the same seed"
    if how == "reset":
        outcome = engine.reset_cache()
        if outcome.complete:
            return "", f"reset: {outcome.message}"
        return run_id, f"nonce, as the reset was not complete: {outcome.message}"
    return run_id, "nonce: no earlier run sent these texts"


def results_base(options: RunOptions) -> str:
    """The results directory as an absolute path, so that workers with another current directory find it."""
    return options.results if "://" in options.results else str(Path(options.results).resolve())
