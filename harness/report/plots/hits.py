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

_MEASURED, _EXPECTED = "measured", "expected"
TITLE = "Hit rate over time"
SETS = "Working set and capacity"


def hits_plot(
    name: str,
    end_s: float,
    requests: Sequence[Rate],
    counters: Sequence[Rate],
    expected: Sequence[Rate],
    measured: Sequence[Rate],
) -> Plot:
    """Steps: each value is of a stretch of time. `measured` is of those of `expected`, drawn as strongly as it; the
    shorter ones of `requests` and `counters` are thin.
    """
    by_bin = {
        f"measured, {_every(requests)}": (requests, HIT, DOTTED if measured else SOLID),
        f"by the server's counters, {_every(counters)}": (counters, OTHER, DASHED),
    }
    by_tenth = {_MEASURED: (measured, HIT, SOLID), _EXPECTED: (expected, EXPECTED, DASHED)}
    rows = {which: _steps(which, rates) for which, (rates, *_) in (by_tenth | by_bin).items() if _known(rates)}
    if not rows:
        return missing(name, TITLE, "No hit rate over time: no request and no counter tells what was hit.")
    looks = {which: (colour, dash) for which, (_, colour, dash) in (by_tenth | by_bin).items() if which in rows}
    axes = {"x": seconds("at", end_s), "y": upright("rate", scale=SHARE, form=".0%")}
    lines = [
        layer(
            {"type": "line", "interpolate": "step-after", "strokeWidth": width}
            | {"invalid": "break-paths-show-path-domains"},
            [row for which in group if which in rows for row in rows[which]],
            color=colours("which", {which: colour for which, (colour, _) in looks.items()}),
            strokeDash=dashes("which", {which: dash for which, (_, dash) in looks.items()}),
            **axes,
        )
        for group, width in ((by_bin, 1.2), ([_MEASURED], 3.6), ([_EXPECTED], 1.8))
        if any(which in rows for which in group)
    ]
    points = layer(
        {"type": "point", "opacity": 0, "size": 200},
        [
            row | {"at": row["middle"]}
            for some in rows.values()
            for row in some
            if row["rate"] is not None and "middle" in row
        ],
        tooltip=tips(which=("", ""), at=("seconds", ".1f"), rate=("hit rate", ".1%"), tokens=("prompt tokens", ",d")),
        **axes,
    )
    # Where the model is right its line lies on the other: rings show that it is there.
    rings = layer(
        {"type": "point", "size": 60, "strokeWidth": 1.5, "color": EXPECTED},
        [row | {"at": row["middle"]} for row in rows.get(_EXPECTED, ()) if "middle" in row],
        **axes,
    )
    return plot(name, TITLE, "% of the prompt tokens", [*lines, *([rings] if _EXPECTED in rows else []), points])


def _known(rates: Sequence[Rate]) -> bool:
    return any(one.rate is not None for one in rates)


def _every(rates: Sequence[Rate]) -> str:
    width_s = rates[0].end_s - rates[0].start_s if rates else 1.0
    return "each second" if width_s == 1 else f"every {width_s:g} s"


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
