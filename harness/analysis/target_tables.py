"""The report's tables of the targets themselves: who answered, the start-up check, the server's own figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rich.table import Table
from rich.text import Text

from harness.analysis.numbers import UNKNOWN, count, milliseconds, percent, tokens
from harness.analysis.server import Counted, Gauged
from harness.analysis.summary import Summary
from harness.analysis.tables import Footnotes, Sides
from harness.record.manifest import Probe

_FIELDS = {
    "engine": "engine",
    "version": "version",
    "model": "model",
    "context": "context_tokens",
    "KV capacity": "capacity_tokens",
    "granularity": "granularity_tokens",
    "KV dtype": "kv_dtype",
    "slots": "slots",
    "prefix caching": "prefix_caching",
}
"""Line of the table -> field of the identity."""
_UNTOLD = "the engine does not tell it"
_CHECK = (
    "start-up check: cached tokens of each probe as the engine's rules have it, as its answer said, and by its "
    f"counters; {UNKNOWN}: the rules need what is not known, the answer did not say, the counters are not there."
)
_SERVER = {
    "generated_tokens": "generated tokens",
    "running_requests": "running requests",
    "waiting_requests": "waiting requests",
    "kv_usage": "KV capacity in use",
    "preemptions": "preemptions",
    "evicted_tokens": "evicted tokens",
    "external_cached_tokens": "tokens from an external cache",
}
"""Field of `ServerFigures` -> line of the table."""
_GAUGES = "peak and mean: over the scrapes of the measured phase; what happens between two of them is not seen."


def identity_table(sides: Sides, notes: Footnotes) -> Table:
    """One line for each property, one column for each side."""
    table = sides.columns()
    for label, name in _FIELDS.items():
        table.add_row(label, *(Text(_property(summary.identity, name, notes)) for summary in sides.summaries))
    if any(_flags(summary.identity) for summary in sides.summaries):
        table.add_row("not told", *(Text(_flags_cell(summary.identity, notes)) for summary in sides.summaries))
    table.add_row("cold start", *(Text(summary.cold_start or UNKNOWN) for summary in sides.summaries))
    return table


def _property(identity: Mapping[str, Any], name: str, notes: Footnotes) -> str:
    value = identity.get(name)
    if value is None:
        return notes.unknown(identity.get("unknown", {}).get(name, _UNTOLD))
    text = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
    if name.endswith("_tokens"):
        text = f"{count(value)} token{'' if value == 1 else 's'}"
    return " ".join([text, *_beside(identity, name), *(["(by hand)"] if name in identity.get("by_hand", ()) else [])])


def _beside(identity: Mapping[str, Any], name: str) -> list[str]:
    """What belongs on the same line."""
    build, path, adapter = (identity.get(key) for key in ("build", "model_path", "adapter"))
    if name == "version" and build and build != identity["version"]:
        return [f"(build {build})"]
    if name == "model":
        texts = [str(path)] if path and path != identity["model"] else []
        texts += [f"adapter {adapter}"] if adapter else []
        return [f"({', '.join(texts)})"] if texts else []
    return []


def _flags(identity: Mapping[str, Any]) -> list[str]:
    """Names of what is not known and has no line of its own."""
    return [name for name in identity.get("unknown", {}) if name not in _FIELDS.values()]


def _flags_cell(identity: Mapping[str, Any], notes: Footnotes) -> str:
    unknown = identity.get("unknown", {})
    return ", ".join(f"{name} {notes.unknown(unknown[name])}" for name in _flags(identity))


def check_table(sides: Sides, notes: Footnotes) -> Table | None:
    """One row for each probe of each start-up check; None if none was made."""
    if not any(summary.check for summary in sides.summaries):
        return None
    notes.need(_CHECK)
    table = sides.table("probe")
    for heading in ("prompt\ntokens", "expected\ncached", "usage\ncached", "counters\ncached", "TTFT\nms"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=8)
    for number, summary in sides.numbered():
        for probe in summary.check.probes if summary.check else ():
            counts = (probe.usage_cached_tokens, probe.counter_cached_tokens)
            table.add_row(
                *number,
                probe.name,
                count(probe.prompt_tokens),
                _expected(probe),
                *map(count, counts),
                milliseconds(probe.ttft_ms),
            )
    return table


def _expected(probe: Probe) -> str:
    least = probe.expected_cached_tokens
    if least is None or not probe.allowance_tokens:
        return count(least)
    return f"{count(least)} to {count(least + probe.allowance_tokens)}"


def server_table(sides: Sides, notes: Footnotes) -> Table | None:
    """One line for each metric that one of the engines has, one column for each side; None if none has any."""
    table = sides.columns(justify="right")
    for name, label in _SERVER.items():
        figures = [getattr(summary.server, name) for summary in sides.summaries]
        if any(isinstance(figure, Counted) for figure in figures):
            table.add_row(label, *map(partial(_counted, notes=notes), figures, sides.summaries))
        elif any(isinstance(figure, Gauged) for figure in figures):
            notes.need(_GAUGES)
            for which in ("peak", "mean"):
                cells = map(partial(_gauged, notes=notes, which=which), figures, sides.summaries)
                table.add_row(f"{label}, {which}", *cells)
    return table if table.rows else None


def _counted(figure: Counted | None, summary: Summary, notes: Footnotes) -> str:
    if figure is None:
        return _none_such(summary, notes)
    return notes.unknown(figure.reason) if figure.value is None else tokens(figure.value)


def _gauged(figure: Gauged | None, summary: Summary, notes: Footnotes, which: str) -> str:
    if figure is None:
        return _none_such(summary, notes)
    value = figure.peak if which == "peak" else figure.mean
    if value is None:
        return notes.unknown(figure.reason)
    return percent(value) if figure is summary.server.kv_usage else f"{value:,.1f}".removesuffix(".0")


def _none_such(summary: Summary, notes: Footnotes) -> str:
    return notes.unknown(f"{summary.identity.get('engine', 'the engine')} has no such metric")
