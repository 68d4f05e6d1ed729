"""Where hits collapse: runs of several engines under rising pressure, as points and as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table

from harness.analysis.numbers import UNKNOWN, count, milliseconds, percent
from harness.analysis.summary import Summary

MEANING = (
    "n: requests; shareable, expected, measured: of all prompt tokens, what a cache without end would serve, what this "
    "one should by the model of it, and what the answers report; off: expected - measured; evicted: lost for want of "
    "room; TTFT in ms."
)


@dataclass(frozen=True, slots=True)
class Place:
    """One run; shares are of its prompt tokens. None: not known."""

    pressure: str
    requests: int
    shareable: float | None
    expected: float | None
    measured: float | None
    evicted: float | None
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None


Cliffs = Mapping[str, Sequence[Place]]
"""Name of an engine -> its runs, by rising pressure."""


def place(pressure: str, summary: Summary) -> Place:
    steps, group = summary.waterfall.steps, next((one for one in summary.groups if one.warmth == "all"), None)
    ttft = None if group is None else group.times.ttft

    def share(tokens: int | None) -> float | None:
        return None if tokens is None or steps is None or not steps.prompt_tokens else tokens / steps.prompt_tokens

    return Place(
        pressure=pressure,
        requests=0 if group is None else group.requests,
        shareable=None if steps is None else share(steps.shareable),
        expected=None if steps is None else share(steps.expected),
        measured=None if steps is None else share(steps.measured),
        evicted=None if steps is None else share(steps.capacity),
        ttft_p50_ms=None if ttft is None else ttft.p50,
        ttft_p99_ms=None if ttft is None else ttft.p99,
    )


def cliff_table(cliffs: Cliffs) -> Table:
    """A line for each run."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column("engine", no_wrap=True)
    for heading in ("pressure", "n", "shareable", "expected", "measured", "off", "evicted", "TTFT\np50", "\np99"):
        table.add_column(heading, justify="right", no_wrap=True)
    for engine, places in cliffs.items():
        for one in places:
            shares = (one.shareable, one.expected, one.measured)
            table.add_row(
                engine,
                one.pressure,
                count(one.requests),
                *(percent(share) for share in shares),
                _off(one),
                percent(one.evicted),
                milliseconds(one.ttft_p50_ms),
                milliseconds(one.ttft_p99_ms),
            )
        table.add_section()
    return table


def _off(one: Place) -> str:
    """Expected - measured, in percent of the prompt tokens."""
    if one.expected is None or one.measured is None:
        return UNKNOWN
    off = round(100 * (one.expected - one.measured), 2)
    return f"{off:+.2f}" if off else "0.00"
