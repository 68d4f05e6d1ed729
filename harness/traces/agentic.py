"""Traces of coding agents: one JSON object a session, with the sessions of its sub-agents inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.cache.base import Prompt
from harness.errors import InputError
from harness.traces.clock import Clock
from harness.traces.entry import (
    BadEntry,
    Entry,
    check_keys,
    entries_of,
    hash_ids,
    optional_seconds,
    optional_text,
    seconds,
    text,
    whole,
)
from harness.traces.lines import HOW_TO_GO_ON, nothing_left
from harness.traces.request import Parent, Skipped, Trace, TraceRequest

_MS_PER_S = 1000
_TRACE = (("id", "block_size", "requests"), ("models", "hash_id_scope", "tool_tokens", "system_tokens", "totals"))
_REQUEST = (
    ("t", "in", "out", "hash_ids"),
    ("type", "model", "input_types", "output_types", "stop", "api_time", "ttft", "think_time"),
)
_AGENT = (
    ("t", "agent_id", "requests"),
    (
        *("type", "subagent_type", "duration_ms", "total_tokens", "tool_use_count", "status"),
        *("models", "tool_tokens", "system_tokens"),
    ),
)


def read_agentic(path: Path, value: object, skip_bad: bool = False) -> Trace:
    """The trace that is `value`, the JSON object in `path`. Sub-agents' requests stand among the others, by time.

    Ids mean something within their file only. One model's cache is of no use to another, so the same id with another
    model is another item. Where `hash_ids` are of full blocks only, what is left of the prompt is an item that nobody
    shares. Raises InputError.
    """
    try:
        entry = check_keys(value, *_TRACE)
        reader = _Reader(path, whole(entry, "block_size", 1), skip_bad)
        reader.read(_Agent(text(entry, "id"), entries_of(entry, "requests"), "requests", 0.0))
    except BadEntry as problem:
        raise InputError(f"{path}: {problem}") from None
    skipped = Skipped(reader.bad, reader.first_bad)
    if not reader.requests:
        raise nothing_left(path, skipped)
    requests = sorted(reader.requests, key=lambda request: request.time_s or 0.0)
    return Trace(path.name, f"agentic, blocks of {reader.block_tokens} tokens", reader.block_tokens, requests, skipped)


@dataclass(frozen=True, slots=True)
class _Agent:
    """One session to be read."""

    session: str
    entries: Sequence[object]
    place: str
    """Of its list in the file."""
    start_s: float
    """What the times of its requests count from."""
    parent: Parent | None = None
    parent_end_s: float | None = None
    """When the answer was complete that its first request follows."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One request of an agent, before it is known what happened around it."""

    time_s: float
    end_s: float | None
    prompt: Prompt
    output_tokens: int
    think_time_s: float | None


@dataclass(frozen=True, slots=True)
class _Started:
    """A sub-agent of an agent."""

    name: str
    entries: Sequence[object]
    place: str
    after: int
    """Number of its parent's request whose answer starts it."""
    start_s: float
    end_s: float | None
    """None: it goes on in the background, and nobody waits for it."""


@dataclass(slots=True)
class _Reader:
    path: Path
    block_tokens: int
    skip_bad: bool
    requests: list[TraceRequest] = field(default_factory=list)
    bad: int = 0
    first_bad: str | None = None
    item_ids: dict[tuple[str | None, int], int] = field(default_factory=dict)
    """(model, id in the file) -> id of the item."""
    item_count: int = 0
    sub_agents: set[str] = field(default_factory=set)
    """Their sessions so far."""

    def read(self, agent: _Agent) -> None:
        """Add the requests of an agent, and of all that it starts."""
        calls: list[_Call] = []
        started: list[_Started] = []
        clock = Clock("t")
        for index, value in enumerate(agent.entries):
            place = f"{agent.place}[{index}]"
            try:
                if isinstance(value, dict) and "requests" in value:
                    started.append(self._started(value, place, len(calls) - 1, agent.start_s))
                else:
                    calls.append(self._call(value, clock, agent.start_s))
            except BadEntry as problem:
                self._refuse(place, problem)
        waited_until_s: dict[int, float] = {}
        if agent.parent_end_s is not None:
            waited_until_s[0] = agent.parent_end_s
        for sub in started:
            before = sub.after + 1 if sub.end_s is not None and sub.after + 1 < len(calls) else None
            if before is not None and sub.end_s is not None:
                waited_until_s[before] = max(sub.end_s, waited_until_s.get(before, 0.0))
            parent = Parent(agent.session, sub.after, before)
            name, place = self._session(f"{agent.session}/{sub.name}"), f"{sub.place}.requests"
            self.read(_Agent(name, sub.entries, place, sub.start_s, parent, calls[sub.after].end_s))
        for number, call in enumerate(calls):
            think_time_s = call.think_time_s
            if number in waited_until_s:
                think_time_s = max(0.0, call.time_s - waited_until_s[number])
            self.requests.append(
                TraceRequest(call.time_s, call.prompt, call.output_tokens, agent.session, agent.parent, think_time_s)
            )

    def _session(self, name: str) -> str:
        """A name of its own for a sub-agent's session, as an agent_id may come again."""
        while name in self.sub_agents:
            name += "'"
        self.sub_agents.add(name)
        return name

    def _started(self, value: Entry, place: str, after: int, origin_s: float) -> _Started:
        """`t` of a sub-agent is when its parent heard of it: of its end, if it has a duration, else of its start."""
        entry = check_keys(value, *_AGENT)
        if after < 0:
            raise BadEntry("a sub-agent stands before the first request of its parent")
        heard_s = origin_s + seconds(entry, "t")
        duration_s = optional_seconds(entry, "duration_ms", _MS_PER_S)
        start_s, end_s = (heard_s, None) if duration_s is None else (max(origin_s, heard_s - duration_s), heard_s)
        return _Started(text(entry, "agent_id"), entries_of(entry, "requests"), place, after, start_s, end_s)

    def _call(self, value: object, clock: Clock, origin_s: float) -> _Call:
        entry = check_keys(value, *_REQUEST)
        prompt = self._prompt(whole(entry, "in", 1), hash_ids(entry), optional_text(entry, "model"))
        output_tokens = whole(entry, "out", 0)  # published traces have answers of no tokens
        took_s, think_time_s = optional_seconds(entry, "api_time"), optional_seconds(entry, "think_time")
        time_s = clock.passed(seconds(entry, "t")) + origin_s
        return _Call(time_s, None if took_s is None else time_s + took_s, prompt, output_tokens, think_time_s)

    def _prompt(self, tokens: int, ids: list[int], model: str | None) -> Prompt:
        full, rest = divmod(tokens, self.block_tokens)
        if len(ids) not in (full, full + (rest > 0)):
            raise BadEntry(
                f"in {tokens} has {full} full blocks of {self.block_tokens} tokens, but hash_ids has {len(ids)}"
            )
        prompt = [(self._item((model, one)), self.block_tokens) for one in ids[:full]]
        if rest:
            prompt.append((self._item((model, ids[-1])) if len(ids) > full else self._new_item(), rest))
        return prompt

    def _item(self, name: tuple[str | None, int]) -> int:
        if name not in self.item_ids:
            self.item_ids[name] = self._new_item()
        return self.item_ids[name]

    def _new_item(self) -> int:
        self.item_count += 1
        return self.item_count

    def _refuse(self, place: str, problem: BadEntry) -> None:
        sentence = f"{place}: {problem}"
        if not self.skip_bad:
            raise InputError(f"{self.path}, {sentence}; {HOW_TO_GO_ON}")
        self.bad += 1
        self.first_bad = self.first_bad or sentence
