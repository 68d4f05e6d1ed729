"""The hit rate over time, and the working set against the capacity below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from harness.analysis.summary import Summary
from harness.report.hits import Rate
from harness.report.palette import BAD, EXPECTED, HIT, OTHER, TIME
from harness.report.plot import (
    DASHED,
    DOTTED,
    SHARE,
    SOLID,
    Plot,
    colours,
    dashes,
    layer,
    missing,
    plot,
    quantity,
    seconds,
    tips,
    upright,
)

_REQUESTS, _COUNTERS, _EXPECTED = "measured, by requests", "by the server's counters", "expected"
_COLOURS = {_REQUESTS: HIT, _COUNTERS: OTHER, _EXPECTED: EXPECTED}
_DASHES = {_REQUESTS: SOLID, _COUNTERS: DASHED, _EXPECTED: SOLID}
TITLE = "Hit rate over time"
SETS = "Working set and capacity"


def hits_plot(
    name: str, end_s: float, requests: Sequence[Rate], counters: Sequence[Rate], expected: Sequence[Rate]
) -> Plot:
    """Steps: each value is of a stretch of time."""
    rows = [*_steps(_EXPECTED, expected), *_steps(_COUNTERS, counters), *_steps(_REQUESTS, requests)]
    if not any(row["rate"] is not None for row in rows):
        return missing(name, TITLE, "No hit rate over time: no request and no counter tells what was hit.")
    present = {row["which"] for row in rows}
    told = tips(which=("", ""), at=("seconds", ".1f"), rate=("hit rate", ".1%"), tokens=("prompt tokens", ",d"))
    lines = layer(
        {"type": "line", "interpolate": "step-after", "invalid": "break-paths-show-path-domains"},
        rows,
        x=seconds("at", end_s),
        y=upright("rate", scale=SHARE, form=".0%"),
        color=colours("which", {name: colour for name, colour in _COLOURS.items() if name in present}),
        strokeDash=dashes("which", {name: dash for name, dash in _DASHES.items() if name in present}),
    )
    points = layer(
        {"type": "point", "opacity": 0, "size": 200},
        [row | {"at": row["middle"]} for row in rows if row["rate"] is not None and "middle" in row],
        x=seconds("at", end_s),
        y=upright("rate", scale=SHARE, form=".0%"),
        tooltip=told,
    )
    return plot(name, TITLE, "% of the prompt tokens", [lines, points])


def _steps(which: str, rates: Sequence[Rate]) -> list[dict[str, Any]]:
    """A point at the beginning of each stretch, and one that ends each run of them."""
    rows: list[dict[str, Any]] = []
    for rate, later in zip(rates, chain(rates[1:], [None]), strict=False):
        middle = (rate.start_s + rate.end_s) / 2
        rows.append(
            {"which": which, "at": rate.start_s, "rate": rate.rate, "tokens": rate.prompt_tokens, "middle": middle}
        )
        if later is None or later.start_s > rate.end_s + 1e-6:
            rows.append({"which": which, "at": rate.end_s, "rate": rate.rate, "tokens": rate.prompt_tokens})
            rows.append({"which": which, "at": rate.end_s, "rate": None, "tokens": 0})
    return rows


def working_set_plot(name: str, end_s: float, summary: Summary) -> Plot:
    if not summary.working_set:
        return missing(name, SETS, "No working set: nothing was measured.")
    named = {"working set": (TIME, SOLID), "touched in the window": (OTHER, DASHED), "KV capacity": (BAD, DOTTED)}
    rows: list[Mapping[str, Any]] = []
    for window in summary.working_set:
        for which, tokens in (
            ("working set", window.working_set_tokens),
            ("touched in the window", window.touched_tokens),
        ):
            rows.append({"which": which, "at": window.start_s, "tokens": tokens})
            if window is summary.working_set[-1]:
                rows.append({"which": which, "at": window.end_s, "tokens": tokens})
    capacity = summary.achieved.capacity_tokens
    if capacity:
        rows += [{"which": "KV capacity", "at": at, "tokens": capacity} for at in (0, end_s)]
    else:
        named.pop("KV capacity")
    lines = layer(
        {"type": "line", "interpolate": "step-after"},
        rows,
        x=seconds("at", end_s),
        y=upright("tokens", scale={"zero": True}),
        color=colours("which", {which: colour for which, (colour, _) in named.items()}),
        strokeDash=dashes("which", {which: dash for which, (_, dash) in named.items()}),
        tooltip=[*tips(which=("", "")), quantity("at", "seconds", format=".1f"), quantity("tokens", format=",d")],
    )
    return plot(name, SETS, "tokens", [lines], height=150)
