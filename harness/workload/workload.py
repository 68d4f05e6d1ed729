"""A scenario's sessions by number, and what can be known of all of them beforehand."""

from __future__ import annotations

from harness.workload.faults import with_faults
from harness.workload.kinds import makers
from harness.workload.long_document import document_count, document_tokens
from harness.workload.pressure import solve_pressure
from harness.workload.scenario import WORDS, LongDocument, Scenario
from harness.workload.session import Message, Session
from harness.workload.sharing import tree
from harness.workload.template import Template
from harness.workload.tree import branch, longest_branch, with_branch


class Workload:
    """The sessions of a scenario: session n is the same wherever it is made, and shares nothing with any state.

    `nonce` goes into the texts only: runs with another nonce send other texts of the same lengths.
    """

    def __init__(self, scenario: Scenario, nonce: str) -> None:
        """Raises ScenarioError if the scenario's sharing or pressure cannot be had, InputError if its pressure waits
        for a capacity: see `solve_pressure`."""
        self.scenario = solve_pressure(scenario, None)
        self.levels = tree(self.scenario)
        """The sharing tree, root first, also where the scenario gives it as a share; empty if there is none."""
        self.seed = f"{scenario.seed}/{nonce}"
        """What all content ids are made with."""
        self._make, self._make_longest = makers(self.scenario)

    def session(self, number: int) -> Session:
        """The session that is played as number `number`, counted from 0, with the sub-agents that it starts. Only where
        a scenario has sub-agents does its own number differ, which no other session and no sub-agent has."""
        way = branch(self.levels, self.scenario.seed, self.seed, number)
        session = with_branch(self._make(self.seed, number), way)
        return with_faults(session, self.scenario.fault, self.scenario.seed, self.seed)

    @property
    def roles(self) -> frozenset[str]:
        """Roles of the messages that prompts are made of; a first prompt has no answers yet."""
        return frozenset(message.role for message in self._longest_prompt())

    @property
    def documents_needed(self) -> tuple[int, ...]:
        """Tokens of each document that real text is wanted for, by document number; empty if none is."""
        if not isinstance(self.scenario, LongDocument) or self.scenario.corpus == WORDS:
            return ()
        return tuple(document_tokens(self.scenario, document) for document in range(document_count(self.scenario)))

    def longest_prompt_tokens(self, template: Template) -> int:
        """The length that no prompt of any session exceeds, template included.

        It is reached when all draws of a session come out largest. Live answers count as many tokens as were asked for.
        """
        return template.tokens(self._longest_prompt())

    def longest_request_tokens(self, template: Template) -> int:
        """The context that a request can need: the longest prompt and the longest answer to it."""
        return self.longest_prompt_tokens(template) + self.longest_session.turns[-1].output_tokens

    @property
    def longest_session(self) -> Session:
        """All draws of it come out largest."""
        return with_branch(self._make_longest(), longest_branch(self.levels))

    def _longest_prompt(self) -> tuple[Message, ...]:
        session = self.longest_session
        return session.prompt(len(session.turns) - 1, [turn.reply for turn in session.turns[:-1]])
