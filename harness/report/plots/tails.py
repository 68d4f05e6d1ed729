"""Distributions of TTFT and TPOT, hits against misses: as a whole, and their tails."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.palette import HIT, MISS, OTHER, Spec
from harness.report.plot import LOG, Plot, colours, layer, missing, plot, quantity, tips, upright
from harness.report.tails import Tail, Time

COLOURS = {"hit": HIT, "miss": MISS, "not told": OTHER}
NAMES = {"ttft_ms": "TTFT", "tpot_ms": "TPOT"}
_MARKS = [10.0**-power for power in range(8)]
"""Of the axis of shares that took longer."""
_LACKS = {
    "ttft_ms": "no successful request has one",
    "tpot_ms": "no answer has two or more output tokens with a known count",
}


def ecdf_plot(name: str, time: Time, tails: Sequence[Tail], range_ms: tuple[float, float]) -> Plot:
    title = f"{NAMES[time]} distribution"
    if not tails:
        return missing(name, title, f"No {NAMES[time]}: {_LACKS[time]}.")
    return _plot(name, title, time, tails, range_ms, upright("share", scale={"domain": [0, 1]}, form=".0%"), False)


def tail_plot(name: str, time: Time, tails: Sequence[Tail], range_ms: tuple[float, float]) -> Plot:
    title = f"{NAMES[time]} tail"
    if not tails:
        return missing(name, title, f"No tail of {NAMES[time]}: {_LACKS[time]}.")
    least = min(1 / max(one.n for one in tails), 0.1)
    up = upright("above", scale=LOG | {"domain": [least, 1]}, form="~%")
    up["axis"]["values"] = _MARKS
    return _plot(name, title, time, tails, range_ms, up, True)


def _plot(
    name: str, title: str, time: Time, tails: Sequence[Tail], range_ms: tuple[float, float], up: Spec, tail: bool
) -> Plot:
    rows = [
        {"which": one.which, "share": share, "above": 1 - share, "ms": round(value, 4)}
        for one in tails
        for share, value in (one.curve if tail else (*one.curve, (1.0, one.longest_ms)))
        if value > 0
    ]
    across = quantity("ms", f"{NAMES[time]}, ms", scale=LOG | {"domain": list(range_ms)}, axis={"format": ",~r"})
    present = {one.which for one in tails}
    told = tips(which=("", ""), ms=("ms", ",.2f"), share=("took at most as long", ".2%"))
    line = layer(
        {"type": "line", "interpolate": "linear" if tail else "step-after", "clip": True},
        rows,
        x=across,
        y=up,
        color=colours("which", {which: colour for which, colour in COLOURS.items() if which in present}),
    )
    points = layer({"type": "point", "opacity": 0, "size": 120, "clip": True}, rows, x=across, y=up, tooltip=told)
    unit = "% beyond that time, log scale" if tail else "% up to that time"
    return plot(name, title, unit, [line, points])
