"""The trace that a replay plays: its keys in a scenario file, and its requests as sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, model_validator

from harness.errors import InputError, ScenarioError
from harness.traces.mooncake import BLOCK_TOKENS
from harness.traces.reading import read_trace
from harness.traces.request import Parent, Trace, TraceRequest

KEPT_TRACES = 4

Keys = TypeVar("Keys", bound="TraceKeys")


class TraceKeys(BaseModel):
    """Which trace is played, and how fast."""

    trace: str = Field(
        min_length=1,
        description="Path of the trace, relative to the scenario file: Mooncake JSONL, agentic JSON, or JSONL of "
        "OpenAI messages. It must be there, with the same content, on every machine that runs workers.",
    )
    times: Literal["trace", "scaled", "none"] = Field(
        default="trace",
        description="When requests are sent. trace: when the trace has them; scaled: speed times as fast; none: each "
        "user sends one after the other, without pauses.",
    )
    speed: float | None = Field(
        default=None,
        strict=True,
        gt=0,
        allow_inf_nan=False,
        description="With times: scaled, how much faster than in the trace time goes: 2.0 halves all waits.",
    )
    block_tokens: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        description="Tokens that an id of a Mooncake trace stands for (left out: 512), or of the blocks that messages "
        "are cut into (left out: 16); an agentic trace tells its own.",
    )
    tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="Path of a tokenizer.json, relative to the scenario file, that counts the tokens of messages; left "
        "out: an estimate.",
    )
    skip_bad_lines: bool = Field(
        default=False, strict=True, description="true: what cannot be used of the trace is left out."
    )
    fingerprint: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="sha-256 of the trace, followed by the tokenizer if there is one; another file is refused. Left "
        "out: that of the file which the run begins with.",
    )

    @model_validator(mode="after")
    def _speed_where_it_counts(self: Keys) -> Keys:
        if (self.times == "scaled") != (self.speed is not None):
            raise ValueError("times: scaled and speed belong together; give both or none")
        return self

    def located(self: Keys, folder: Path, given: str) -> Keys:
        """The keys with absolute paths, relative ones counting from `folder`, and with the fingerprint.

        `given` says in errors where the keys stand. Raises InputError if the trace cannot be played.
        """
        found: dict[str, str] = {}
        for key, path in (("trace", self.trace), ("tokenizer", self.tokenizer)):
            if path is not None:
                file = folder / Path(path).expanduser()
                if not file.is_file():
                    raise ScenarioError(
                        f"{given}, key {key}: there is no file {file}; give a path that is absolute or relative to "
                        f"{folder}."
                    )
                found[key] = str(file.resolve())
        here = self.model_copy(update=found)
        here = here.model_copy(update={"fingerprint": here.fingerprint or _fingerprint(here.trace, here.tokenizer)})
        load_trace(here)
        return here


@dataclass(frozen=True, slots=True)
class TracedSession:
    """Requests with one session key are one session, in order; each other request is a session of its own."""

    number: int
    """Among all sessions of the trace, sub-agents included, in the order of their first requests."""
    requests: Sequence[TraceRequest]
    sub_agents: Sequence[tuple[Parent, TracedSession]]
    """How each one is started by this session, and what it is."""


@dataclass(frozen=True, slots=True)
class LoadedTrace:
    """A trace that can be played."""

    fingerprint: str
    requests: Sequence[TraceRequest]
    sessions: Sequence[TracedSession]
    """Those that no other one starts, in the order of their first requests."""
    session_count: int
    """Sub-agents included."""
    first_s: float | None
    """When its first request was sent, by its own clock; None: it has no times."""
    period_s: float
    """From its first request until it begins again: one mean gap after its last request."""


def load_trace(keys: TraceKeys) -> LoadedTrace:
    """The trace that the keys ask for. Raises InputError if it cannot be read or played, or is another one."""
    fingerprint = _fingerprint(keys.trace, keys.tokenizer)
    if keys.fingerprint not in (None, fingerprint):
        raise ScenarioError(
            f"The trace {keys.trace} (with its tokenizer, if any) does not have the fingerprint that the scenario has: "
            "use the same files on every machine; for another trace, give its fingerprint or null."
        )
    loaded = _load(keys.trace, keys.block_tokens, keys.tokenizer, keys.skip_bad_lines, fingerprint)
    if keys.times != "none" and loaded.first_s is None:
        raise ScenarioError(f"{keys.trace} does not tell when requests were sent; give times: none to play it.")
    return loaded


def _fingerprint(trace: str, tokenizer: str | None) -> str:
    digest = sha256()
    for path in filter(None, (trace, tokenizer)):
        try:
            digest.update(Path(path).read_bytes())
        except OSError as problem:
            raise InputError(f"{path}: cannot be read: {problem.strerror}") from None
    return digest.hexdigest()


@lru_cache(maxsize=KEPT_TRACES)
def _load(path: str, block_tokens: int | None, tokenizer: str | None, skip_bad: bool, fingerprint: str) -> LoadedTrace:
    trace = read_trace(
        Path(path),
        mooncake_block_tokens=block_tokens or BLOCK_TOKENS,
        messages_block_tokens=block_tokens,
        tokenizer=Path(tokenizer) if tokenizer else None,
        skip_bad=skip_bad,
    )
    requests = trace.requests
    first_s, last_s = requests[0].time_s, requests[-1].time_s
    span_s = last_s - first_s if first_s is not None and last_s is not None else 0.0
    mean_gap_s = span_s / (len(requests) - 1) if len(requests) > 1 else 0.0
    sessions, session_count = _sessions(trace)
    return LoadedTrace(fingerprint, requests, sessions, session_count, first_s, span_s + mean_gap_s)


def _sessions(trace: Trace) -> tuple[Sequence[TracedSession], int]:
    """The sessions that no other one starts, with those that they start, and the number of all of them."""
    requests: dict[str | int, list[TraceRequest]] = {}
    for place, request in enumerate(trace.requests):
        requests.setdefault(place if request.session is None else request.session, []).append(request)
    numbers = {key: number for number, key in enumerate(requests)}
    started: dict[str | int, list[tuple[Parent, str | int]]] = {}
    for key, (first, *_) in requests.items():
        if first.parent is not None:
            started.setdefault(first.parent.session, []).append((first.parent, key))

    def session(key: str | int) -> TracedSession:
        sub_agents = tuple((parent, session(sub_agent)) for parent, sub_agent in started.get(key, ()))
        return TracedSession(numbers[key], tuple(requests[key]), sub_agents)

    return tuple(session(key) for key, (first, *_) in requests.items() if first.parent is None), len(requests)
