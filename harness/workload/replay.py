"""Replays: each prompt is one message of the user, with a segment for each block that the trace's request has."""

from __future__ import annotations

from harness.errors import ScenarioError
from harness.traces.request import TraceRequest
from harness.workload.content import content_id
from harness.workload.distribution import Draws, LongestDraws
from harness.workload.scenario import Replay
from harness.workload.session import Message, Segment, Session, SubAgent, Turn
from harness.workload.trace_file import TracedSession, load_trace


class ReplayedSessions:
    """The sessions of a trace in the order of their starts, each with its sub-agents; after the last one the trace
    begins again, with other texts."""

    def __init__(self, scenario: Replay) -> None:
        """Raises InputError if the trace cannot be read or played."""
        self._scenario = scenario
        self._trace = load_trace(scenario)
        self._speed = scenario.speed or 1.0
        if not scenario.output_tokens and any(request.output_tokens is None for request in self._trace.requests):
            raise ScenarioError(
                f"{scenario.trace} does not tell how long all answers are; give output_tokens, for those of which it "
                "does not."
            )

    def session(self, seed: str, number: int) -> Session:
        """Session `number` of those that no other one starts; `seed` (the scenario's and the nonce) goes into the texts
        only. Its own number also counts the sub-agents of the trace."""
        lap, place = divmod(number, len(self._trace.sessions))
        return self._session(seed, lap, self._trace.sessions[place])

    def _session(self, seed: str, lap: int, traced: TracedSession) -> Session:
        number = lap * self._trace.session_count + traced.number
        draws = Draws(self._scenario.seed, "session", number)
        turns = []
        for index, request in enumerate(traced.requests):
            output_tokens = self._output_tokens(request, draws)
            reply = Segment("reply", content_id(seed, "session", number, "reply", index), output_tokens)
            turns.append(
                Turn(
                    index=index,
                    question=Message("user", self._prompt(seed, lap, request)),
                    output_tokens=output_tokens,
                    reply=Message("assistant", (reply,)),
                    think_time_s=self._think_time_s(index, request),
                    due_s=self._due_s(lap, index, request),
                )
            )
        sub_agents = tuple(
            SubAgent(self._session(seed, lap, started), parent.after, parent.before)
            for parent, started in traced.sub_agents
        )
        return Session(
            number, self._scenario.kind, opening=(), turns=tuple(turns), keeps_history=False, sub_agents=sub_agents
        )

    def longest_session(self) -> Session:
        """One request: its prompt as long as the longest, and with its answer as long as any request with its own."""
        requests, largest = self._trace.requests, LongestDraws()
        prompt_tokens = max(request.prompt_tokens for request in requests)
        most_tokens = max(request.prompt_tokens + self._output_tokens(request, largest) for request in requests)
        output_tokens = most_tokens - prompt_tokens
        question = Message("user", (Segment("block", content_id("", "longest"), prompt_tokens),))
        reply = Message("assistant", (Segment("reply", content_id("", "reply"), output_tokens),))
        turn = Turn(0, question, output_tokens, reply, think_time_s=0.0)
        return Session(0, self._scenario.kind, opening=(), turns=(turn,), keeps_history=False)

    def _prompt(self, seed: str, lap: int, request: TraceRequest) -> tuple[Segment, ...]:
        """Equal ids in one lap are equal texts; an id means something within its trace only."""
        scope = self._trace.fingerprint
        return tuple(
            Segment("block", content_id(seed, "trace", scope, lap, identity), tokens)
            for identity, tokens in request.prompt
        )

    def _output_tokens(self, request: TraceRequest, draws: Draws) -> int:
        if request.output_tokens is None:
            return draws.length("output_tokens", self._scenario.output_tokens)
        return max(1, request.output_tokens)  # no engine can be asked for an answer of no tokens

    def _due_s(self, lap: int, index: int, request: TraceRequest) -> float | None:
        """None where the request waits for an answer or a sub-agent, and it is known how long after that."""
        if self._scenario.times == "none" or request.time_s is None or self._trace.first_s is None:
            return None
        if _waits(index, request) and request.think_time_s is not None:
            return None
        return (lap * self._trace.period_s + request.time_s - self._trace.first_s) / self._speed

    def _think_time_s(self, index: int, request: TraceRequest) -> float:
        if self._scenario.times == "none" or not _waits(index, request) or request.think_time_s is None:
            return 0.0
        return request.think_time_s / self._speed


def _waits(index: int, request: TraceRequest) -> bool:
    """Whether something has to end before request number `index` of its session can be sent."""
    return index > 0 or request.parent is not None
