"""Sharing asked for as a number: the length that what is shared must have for it, and what a plan really shares."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from harness.errors import ScenarioError
from harness.workload.kinds import makers
from harness.workload.popularity import Zipf
from harness.workload.prefixes import Prefixes, planned_reuse
from harness.workload.scenario import Scenario
from harness.workload.tree import Level, Share, branch, with_branch

if TYPE_CHECKING:
    from harness.workload.workload import Workload

LEVEL = "shared"
"""Name of the one level of a tree that is solved for."""
MANY_SESSIONS = 1000
"""Lengths of so many sessions stand for those of all where a share is asked for in the long run."""
MOST_TOKENS = 1_000_000
"""The longest shared content that a share is solved into."""


def achieved_sharing(workload: Workload, sessions: int) -> float:
    """The share of prompt tokens that a cache without limits serves of the first `sessions` sessions, from paths.

    A ratio of sums over all their requests, each of which can reuse every one sent before; the cache is empty at first.
    The template is left out, replies are scripted, arrangement faults are in it.
    """
    return planned_reuse(workload.session(number) for number in range(sessions)).share


def tree(scenario: Scenario) -> tuple[Level, ...]:
    """The levels of the scenario's sharing tree, root first; a share is solved into one level. Empty: no tree.

    Raises ScenarioError if the share cannot be reached.
    """
    sharing = scenario.sharing
    if sharing is None:
        return ()
    if isinstance(sharing, tuple):
        return sharing
    share = as_share(sharing)
    line = (
        _line(bare(scenario), share.sessions, share.fan_out, share.popularity)
        if share.sessions
        else _line(bare(scenario), None, 1, "uniform")  # in the long run all contents are known, however many
    )
    return (_level(share.fan_out, share.popularity, _solved(scenario, share, line)),)


def as_share(sharing: float | Share) -> Share:
    """A share, which may have been given as a bare number."""
    return sharing if isinstance(sharing, Share) else Share(share=sharing)


class _Line(NamedTuple):
    """Sums over all requests as they grow with the length T of a content: prompt tokens are
    `prompt_tokens + requests * (T - 1)`, of which `new_tokens + contents * (T - 1)` are new."""

    requests: int
    contents: int
    prompt_tokens: int
    new_tokens: int

    def share(self, tokens: int) -> float:
        """The share that contents of `tokens` tokens give."""
        longer = tokens - 1
        return 1 - (self.new_tokens + self.contents * longer) / (self.prompt_tokens + self.requests * longer)

    def tokens(self, share: float) -> float:
        """The length T that gives `share`, which must be one that some length gives; 1 where all lengths do."""
        growth = (1 - share) * self.requests - self.contents
        return 1 + (self.new_tokens - (1 - share) * self.prompt_tokens) / growth if growth else 1


@lru_cache(maxsize=64)
def _line(scenario: Scenario, sessions: int | None, fan_out: int, popularity: Literal["uniform"] | Zipf) -> _Line:
    make, _ = makers(scenario)
    level = _level(fan_out, popularity, 1)
    made = [
        with_branch(make("", number), branch([level], scenario.seed, "", number))
        for number in range(sessions or MANY_SESSIONS)
    ]
    reuse = planned_reuse(made)
    if sessions is None:
        heads = Prefixes()
        for session in made:
            heads.add(session.shared_head)
        return _Line(reuse.requests, 0, reuse.prompt_tokens, reuse.new_tokens - heads.tokens)
    contents = {session.shared_head[0].content_id for session in made}
    return _Line(reuse.requests, len(contents), reuse.prompt_tokens, reuse.new_tokens)


def bare(scenario: Scenario) -> Scenario:
    """The scenario with nothing but what decides about the kind's own parts."""
    names = {"name": "bare", "description": ""}
    keys = ("sharing", "fault", "pressure", "capacity_tokens", "running_sessions")
    return scenario.model_copy(update=names | dict.fromkeys(keys))


def _level(fan_out: int, popularity: Literal["uniform"] | Zipf, tokens: int) -> Level:
    return Level(name=LEVEL, fan_out=fan_out, tokens=tokens, popularity=popularity, tenant=fan_out > 1)


def _solved(scenario: Scenario, share: Share, line: _Line) -> int:
    low, high = sorted((line.share(1), line.share(MOST_TOKENS)))
    where = f"Scenario {scenario.name}, key sharing: {share.share:g}"
    if share.share < low:
        raise ScenarioError(
            f"{where} is too low, as its requests share {math.ceil(low * 1000) / 1000:g} with next to nothing added; "
            "ask for more, or for fewer turns and shorter system parts."
        )
    if share.share > high:
        within = f" in {share.sessions} sessions" if share.sessions else ""
        raise ScenarioError(
            f"{where} is too high, as no more than {math.floor(high * 1000) / 1000:g} can be reached{within} with "
            f"{MOST_TOKENS:,} shared tokens at most; ask for less, for more sessions, or for a smaller fan_out."
        )
    return round(line.tokens(share.share))
