"""Chats: the system prompt for all, the user's own preamble, then rounds of question and answer."""

from __future__ import annotations

from harness.workload.content import content_id
from harness.workload.distribution import Draws, LongestDraws
from harness.workload.parts import opening, shared_segment, turns
from harness.workload.scenario import MultiRound
from harness.workload.session import Segment, Session


def session(scenario: MultiRound, seed: str, number: int) -> Session:
    """Session `number`; `seed` (the scenario's and the nonce) goes into the texts only."""
    return _session(scenario, seed, number, Draws(scenario.seed, "session", number))


def longest_session(scenario: MultiRound) -> Session:
    """A session of the largest lengths that any session can have."""
    return _session(scenario, "", 0, LongestDraws())


def _session(scenario: MultiRound, seed: str, number: int, draws: Draws) -> Session:
    preamble_tokens = draws.length("preamble_tokens", scenario.preamble_tokens)
    preamble = Segment("preamble", content_id(seed, "session", number, "preamble"), preamble_tokens)
    messages = [
        ("user", draws.length("user_tokens", scenario.user_tokens))
        for _ in range(draws.length("rounds", scenario.rounds))
    ]
    return Session(
        number=number,
        kind=scenario.kind,
        opening=opening(
            shared_segment("system", scenario.system_tokens, scenario, seed),
            preamble if preamble_tokens else None,
        ),
        turns=turns(messages, scenario, seed, number, draws),
        keeps_history=True,
    )
