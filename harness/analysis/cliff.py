"""Where hits collapse: runs of several engines under rising pressure, or another key, as points and as one table."""

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
_RATES = {"answered/s": "answered_per_s", "goodput/s": "goodput_per_s"}
"""Column -> field of `Place`."""


@dataclass(frozen=True, slots=True)
class Place:
    """One run; shares are of its prompt tokens. None: not known."""

    value: str
    """Of the key that was swept."""
    requests: int
    shareable: float | None
    expected: float | None
    measured: float | None
    evicted: float | None
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    counters: float | None = None
    """By the server's counters, what the answers say in `measured`."""
    answered_per_s: float | None = None
    """Successful requests a second of the measured phase."""
    goodput_per_s: float | None = None
    """Those of them that meet an objective; None also where none was given."""


Cliffs = Mapping[str, Sequence[Place]]
"""Name of an engine -> its runs, by rising value."""


def place(value: str, summary: Summary, measured_s: float | None = None, goodput_per_s: float | None = None) -> Place:
    """`measured_s`: length of the measured phase; None: not known."""
    steps, group = summary.waterfall.steps, next((one for one in summary.groups if one.warmth == "all"), None)
    ttft = None if group is None else group.times.ttft

    def share(tokens: int | None) -> float | None:
        return None if tokens is None or steps is None or not steps.prompt_tokens else tokens / steps.prompt_tokens

    return Place(
        value=value,
        requests=0 if group is None else group.requests,
        shareable=None if steps is None else share(steps.shareable),
        expected=None if steps is None else share(steps.expected),
        measured=summary.hit_rate.rate if steps is None else share(steps.measured),
        evicted=None if steps is None else share(steps.capacity),
        ttft_p50_ms=None if ttft is None else ttft.p50,
        ttft_p99_ms=None if ttft is None else ttft.p99,
        counters=summary.counters.rate,
        answered_per_s=summary.hit_rate.ok / measured_s if measured_s else None,
        goodput_per_s=goodput_per_s,
    )


def cliff_table(cliffs: Cliffs, key: str = "pressure", rates: bool = False) -> Table:
    """A line for each run; `rates`: with its requests a second, for which a terminal has no room."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column("engine", no_wrap=True)
    for heading in (key, "n", "shareable", "expected", "measured", "off", "evicted", "TTFT\np50", "\np99"):
        table.add_column(heading, justify="right", no_wrap=True)
    every = [one for places in cliffs.values() for one in places]
    shown = {name: of for name, of in _RATES.items() if rates and any(getattr(one, of) is not None for one in every)}
    for heading in shown:
        table.add_column(heading, justify="right", no_wrap=True)
    for engine, places in cliffs.items():
        for one in places:
            shares = (one.shareable, one.expected, one.measured)
            table.add_row(
                engine,
                one.value,
                count(one.requests),
                *(percent(share) for share in shares),
                _off(one),
                percent(one.evicted),
                milliseconds(one.ttft_p50_ms),
                milliseconds(one.ttft_p99_ms),
                *(_per_s(getattr(one, of)) for of in shown.values()),
            )
        table.add_section()
    return table


def _per_s(rate: float | None) -> str:
    return UNKNOWN if rate is None else f"{rate:,.2f}" if rate < 10 else f"{rate:,.1f}"


def _off(one: Place) -> str:
    """Expected - measured, in percent of the prompt tokens."""
    if one.expected is None or one.measured is None:
        return UNKNOWN
    off = round(100 * (one.expected - one.measured), 2)
    return f"{off:+.2f}" if off else "0.00"
