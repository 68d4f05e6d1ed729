"""A scenario's sessions by number, and what can be known of all of them beforehand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harness.workload import agent_loop, long_document, multi_round
from harness.workload.scenario import WORDS, AgentLoop, LongDocument, MultiRound, Scenario
from harness.workload.session import Message, Session
from harness.workload.template import Template


class Workload:
    """The sessions of a scenario: session n is the same wherever it is made, and shares nothing with any state.

    `nonce` goes into the texts only: runs with another nonce send other texts of the same lengths.
    """

    def __init__(self, scenario: Scenario, nonce: str) -> None:
        self.scenario = scenario
        self.seed = f"{scenario.seed}/{nonce}"
        """What all content ids are made with."""
        self._session, self._longest_session = _kind(scenario)

    def session(self, number: int) -> Session:
        """Session `number`, counted from 0."""
        return self._session(self.seed, number)

    @property
    def roles(self) -> frozenset[str]:
        """Roles of the messages that prompts are made of; a first prompt has no answers yet."""
        return frozenset(message.role for message in self._longest_prompt())

    @property
    def documents_needed(self) -> tuple[int, ...]:
        """Tokens of each document that real text is wanted for, by document number; empty if none is."""
        if not isinstance(self.scenario, LongDocument) or self.scenario.corpus == WORDS:
            return ()
        return tuple(
            long_document.document_tokens(self.scenario, document) for document in range(self.scenario.documents)
        )

    def longest_prompt_tokens(self, template: Template) -> int:
        """The length that no prompt of any session exceeds, template included.

        It is reached when all draws of a session come out largest. Live answers count as many tokens as were asked for.
        """
        return template.tokens(self._longest_prompt())

    def longest_request_tokens(self, template: Template) -> int:
        """The context that a request can need: the longest prompt and the longest answer to it."""
        return self.longest_prompt_tokens(template) + self._longest_session().turns[-1].output_tokens

    def _longest_prompt(self) -> tuple[Message, ...]:
        session = self._longest_session()
        return session.prompt(len(session.turns) - 1, [turn.reply for turn in session.turns[:-1]])


def _kind(scenario: Scenario) -> tuple[Callable[[str, int], Session], Callable[[], Session]]:
    """How sessions of this kind of scenario are made: one by seed and number, and the longest."""
    match scenario:
        case AgentLoop():
            return partial(agent_loop.session, scenario), partial(agent_loop.longest_session, scenario)
        case LongDocument():
            return partial(long_document.session, scenario), partial(long_document.longest_session, scenario)
        case MultiRound():
            return partial(multi_round.session, scenario), partial(multi_round.longest_session, scenario)
    raise TypeError(f"{type(scenario).__name__} is not a kind of scenario")
