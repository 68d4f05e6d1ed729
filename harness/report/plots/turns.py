"""TTFT and hit rate by turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.report.palette import HIT, TIME
from harness.report.pieces import LAST_TURN
from harness.report.plot import (
    DASHED,
    SHARE,
    SOLID,
    Plot,
    colours,
    dashes,
    layer,
    missing,
    plot,
    quantity,
    tips,
    upright,
)
from harness.report.turns import Turn

TITLE, RATES = "TTFT by turn", "Hit rate by turn"


def turn_plots(times: str, rates: str, turns: Sequence[Turn], most_ms: float) -> list[Plot]:
    """Of TTFT and of the hit rate, under these names."""
    if not turns:
        return [missing(times, TITLE, "Nothing by turn: no measured request belongs to a session.")]
    return [_times(times, turns, most_ms), _rates(rates, turns)]


def _across(turns: Sequence[Turn]) -> dict[str, Any]:
    title = "turn" if turns[-1].turn < LAST_TURN else f"turn ({LAST_TURN}: this one and later ones)"
    scale = {"domain": [-0.5, turns[-1].turn + 0.5], "nice": False}
    return quantity("turn", title, scale=scale, axis={"tickMinStep": 1, "format": "d", "tickCount": 10})


def _times(name: str, turns: Sequence[Turn], most_ms: float) -> Plot:
    rows = [
        {"which": which, "turn": one.turn, "ms": value, "n": one.timed}
        for one in turns
        for which, value in (("p50", one.ttft_p50_ms), ("p90", one.ttft_p90_ms))
        if value is not None
    ]
    if not rows:
        return missing(name, TITLE, "No TTFT by turn: no successful request has one.")
    line = layer(
        {"type": "line", "point": {"filled": True, "size": 36}},
        rows,
        x=_across(turns),
        y=upright("ms", scale={"domain": [0, most_ms], "nice": True}, form=",~r"),
        color=colours("which", {"p50": TIME, "p90": TIME}),
        strokeDash=dashes("which", {"p50": SOLID, "p90": DASHED}),
        tooltip=tips(which=("", ""), turn=("turn", "d"), ms=("TTFT, ms", ",.1f"), n=("requests", ",d")),
    )
    return plot(name, TITLE, "ms", [line])


def _rates(name: str, turns: Sequence[Turn]) -> Plot:
    rows = [{"turn": one.turn, "rate": one.rate, "n": one.requests} for one in turns if one.rate is not None]
    if not rows:
        return missing(name, RATES, "No hit rate by turn: no request tells what it hit.")
    ends = [row | {"from": float(row["turn"]) - 0.35, "to": float(row["turn"]) + 0.35} for row in rows]
    across = _across(turns)
    bar = layer(
        {"type": "rect", "color": HIT},
        ends,
        x=across | {"field": "from"},
        x2={"field": "to"},
        y=upright("rate", scale=SHARE, form=".0%"),
        y2={"datum": 0},
        tooltip=tips(turn=("turn", "d"), rate=("hit rate", ".1%"), n=("requests", ",d")),
    )
    # A bar of no height would look as if nothing was known.
    none = [row for row in ends if not row["rate"]]
    line = layer(
        {"type": "rule", "color": HIT, "strokeWidth": 3}, none,
        x=across | {"field": "from"}, x2={"field": "to"}, y=upright("rate", scale=SHARE, form=".0%"),
    )  # fmt: skip
    return plot(name, RATES, "% of the prompt tokens", [bar, *([line] if none else [])])
