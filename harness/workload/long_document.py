"""Long documents: each session asks some questions about one document, which other sessions may ask about too."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

from harness.workload.content import content_id
from harness.workload.distribution import Draws, LongestDraws
from harness.workload.parts import opening, shared_segment, turns
from harness.workload.scenario import WORDS, LongDocument, Zipf
from harness.workload.session import Segment, Session


def session(scenario: LongDocument, seed: str, number: int) -> Session:
    """Session `number`; `seed` (the scenario's and the nonce) goes into the texts only."""
    draws = Draws(scenario.seed, "session", number)
    return _session(scenario, seed, number, _popular_document(scenario, draws), draws)


def longest_session(scenario: LongDocument) -> Session:
    """A session of the largest lengths that any session can have."""
    longest = max(range(scenario.documents), key=lambda document: document_tokens(scenario, document))
    return _session(scenario, "", 0, longest, LongestDraws())


def document_tokens(scenario: LongDocument, document: int) -> int:
    """The length of document number `document`."""
    return Draws(scenario.seed, "document", document).length("document_tokens", scenario.document_tokens)


def _session(scenario: LongDocument, seed: str, number: int, document: int, draws: Draws) -> Session:
    questions = [
        ("user", draws.length("question_tokens", scenario.question_tokens))
        for _ in range(draws.length("questions", scenario.questions))
    ]
    return Session(
        number=number,
        kind=scenario.kind,
        opening=opening(
            shared_segment("system", scenario.system_tokens, scenario, seed),
            Segment(
                "document",
                content_id(seed, "document", document),
                document_tokens(scenario, document),
                document=None if scenario.corpus == WORDS else document,
            ),
        ),
        turns=turns(questions, scenario, seed, number, draws),
        keeps_history=scenario.keep_history,
    )


def _popular_document(scenario: LongDocument, draws: Draws) -> int:
    """The document that a session asks about, by one random number that serves no other purpose."""
    chance = draws.stream("popularity").random()
    if isinstance(scenario.popularity, Zipf):
        weights = _zipf_sums(scenario.documents, scenario.popularity.zipf)
        return min(bisect_right(weights, chance * weights[-1]), scenario.documents - 1)
    return int(chance * scenario.documents)


@lru_cache(maxsize=8)
def _zipf_sums(documents: int, exponent: float) -> tuple[float, ...]:
    """Running sums of the weights 1 / k^exponent, k from 1 (document 0) to `documents`."""
    return tuple(accumulate(k**-exponent for k in range(1, documents + 1)))
