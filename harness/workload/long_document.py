"""Long documents: each session asks some questions about one document, which other sessions may ask about too."""

from __future__ import annotations

from harness.errors import ScenarioError
from harness.workload.content import content_id
from harness.workload.distribution import Draws, LongestDraws
from harness.workload.parts import opening, shared_segment, turns
from harness.workload.popularity import choice
from harness.workload.scenario import WORDS, LongDocument
from harness.workload.session import Segment, Session


def session(scenario: LongDocument, seed: str, number: int) -> Session:
    """Session `number`; `seed` (the scenario's and the nonce) goes into the texts only."""
    draws = Draws(scenario.seed, "session", number)
    return _session(scenario, seed, number, _document(scenario, number, draws), draws)


def longest_session(scenario: LongDocument) -> Session:
    """A session of the largest lengths that any session can have."""
    longest = max(range(document_count(scenario)), key=lambda document: document_tokens(scenario, document))
    return _session(scenario, "", 0, longest, LongestDraws())


def document_count(scenario: LongDocument) -> int:
    """How many documents there are. Raises ScenarioError if that waits for `solve_pressure`."""
    if scenario.documents is None:
        raise ScenarioError(
            f"The documents of scenario {scenario.name} are not counted yet: its pressure has to be solved first."
        )
    return scenario.documents


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


def _document(scenario: LongDocument, number: int, draws: Draws) -> int:
    """The document that session `number` asks about; where it is drawn, by a random number of no other purpose."""
    documents = document_count(scenario)
    match scenario.order:
        case "interleave":
            return number % documents
        case "tile":
            return number // scenario.repeats % documents
        case "random":
            return choice(scenario.popularity, documents, draws.stream("popularity").random())
