"""The log with what can be put right without changing what a prompt means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from harness.lint.finding import Lint, streams_of
from harness.lint.kinds import FIXABLE, Kind
from harness.lint.reading import Log
from harness.lint.reuse import Served, served
from harness.lint.segments import ChatPrompt
from harness.lint.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Fixed:
    """Prompts that were put right, and what it brings."""

    prompts: Sequence[ChatPrompt]
    """One for each request of the log."""
    changed: dict[Kind, int]
    """Requests that were changed for each kind that was found and can be put right."""
    now: Served
    after: Served


def fixed(log: Log, lint: Lint, tokens: Tokens) -> Fixed:
    """Put right what `lint` found of the kinds `FIXABLE`, kind by kind, if the whole log has no less reuse then."""
    prompts = [request.prompt for request in log.requests]
    drafts, after = prompts, lint.now
    kinds: list[Kind] = []
    changed: dict[Kind, int] = {}
    found = [one.kind for one in lint.kinds]
    for kind in FIXABLE:
        if kind not in found:
            continue
        tried = lint.remedies.fix(prompts, [*kinds, kind])
        result = served(streams_of(log.requests, tried, tokens), lint.cache)
        changed[kind] = 0
        if result.hit_tokens >= after.hit_tokens:
            changed[kind] = sum(one.segments != other.segments for one, other in zip(drafts, tried, strict=True))
            kinds.append(kind)
            drafts, after = tried, result
    return Fixed(drafts, changed, lint.now, after)


def write_fixed(log: Log, result: Fixed, out: Path, sources: Sequence[Path]) -> None:
    """A line for each request, those that did not change as they were. Raises InputError, and never writes a source."""
    if out.exists() and any(out.samefile(source) for source in sources):
        raise InputError(f"--fix {out}: is the file that is read; give the name of another")
    lines = [request.line(prompt) for request, prompt in zip(log.requests, result.prompts, strict=True)]
    try:
        out.write_bytes(b"".join(line + b"\n" for line in lines))
    except OSError as problem:
        raise InputError(f"--fix {out}: cannot be written: {problem.strerror}") from None
