"""Tools and JSON keys in an order that changes: sorted, they are the same."""

from __future__ import annotations

from collections.abc import Iterator

from harness.lint.differing import Place
from harness.lint.json_text import keys_of, span_at, spans, with_sorted_keys
from harness.lint.rule import Step
from harness.lint.segments import TOOLS, Path, Segments, tool_name, with_texts
from harness.lint.values import masked

IN_TOOLS: Path = (TOOLS,)
"""Where keys are sorted: in all tools, or at the path of one segment."""


def tools_step(earlier: Segments, later: Segments, at: Place) -> Step | None:
    """The tools that both have stand in another order."""
    if not any(_role(segments, at) == TOOLS for segments in (earlier, later)):
        return None
    before, now = _names(earlier), _names(later)
    common = set(before) & set(now)
    if [name for name in before if name in common] == [name for name in now if name in common]:
        return None
    order = f"tools by name: {', '.join(sorted(name for name, _ in now))}"
    return Step("tools-shuffled", with_sorted_tools(earlier), with_sorted_tools(later), None, order)


def keys_step(earlier: Segments, later: Segments, at: Place) -> Step | None:
    """What parts the prompts lies in JSON that both have, with its keys in another order."""
    if at.segment >= min(len(earlier), len(later)):
        return None
    one, other = earlier[at.segment].text, later[at.segment].text
    span, of_other = span_at(one, at.at), span_at(other, at.at)
    if span is None or of_other is None or span.start != of_other.start:
        return None
    one, other = one[span.start : span.end], other[of_other.start : of_other.end]
    if keys_of(one) == keys_of(other) or masked(with_sorted_keys(one)) != masked(with_sorted_keys(other)):
        return None
    segment = later[at.segment]
    path = IN_TOOLS if segment.role == TOOLS else segment.path
    order = f"the keys of the JSON in {segment.place} sorted, at every depth"
    return Step("keys-shuffled", with_keys_in_order(earlier, path), with_keys_in_order(later, path), path, order)


def with_sorted_tools(segments: Segments) -> Segments:
    """Tools by name; those of one name by what they hold."""
    tools = sorted(
        (segment for segment in segments if segment.role == TOOLS),
        key=lambda segment: (tool_name(segment.text), with_sorted_keys(segment.text)),
    )
    return (*tools, *(segment for segment in segments if segment.role != TOOLS))


def with_keys_in_order(segments: Segments, path: Path) -> Segments:
    """Every JSON object at `path` with its keys sorted."""
    return with_texts(
        segments,
        [_sorted(segment.text) if path in (segment.path, segment.path[:1]) else segment.text for segment in segments],
    )


def _sorted(text: str) -> str:
    parts, at = [], 0
    for start, end in spans(text):
        parts += [text[at:start], with_sorted_keys(text[start:end])]
        at = end
    return "".join([*parts, text[at:]])


def _role(segments: Segments, at: Place) -> str | None:
    return segments[at.segment].role if at.segment < len(segments) else None


def _names(segments: Segments) -> list[tuple[str, int]]:
    """The name of each tool, and how many of this name came before it."""
    return list(_numbered([tool_name(segment.text) for segment in segments if segment.role == TOOLS]))


def _numbered(names: list[str]) -> Iterator[tuple[str, int]]:
    seen: dict[str, int] = {}
    for name in names:
        yield name, seen.get(name, 0)
        seen[name] = seen.get(name, 0) + 1
