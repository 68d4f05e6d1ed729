"""Hit rate against reuse distance, and against the capacity of a cache."""

from __future__ import annotations

from typing import Any

from harness.report.distances import Reuse
from harness.report.palette import BAD, CARD, HIT, OTHER, TEXT
from harness.report.plot import (
    DASHED,
    LOG,
    SHARE,
    Plot,
    Rows,
    colours,
    dashes,
    layer,
    missing,
    plot,
    quantity,
    tips,
    upright,
)

_ROOM = 2
"""As many times the capacity are within the axis."""
TITLE, AMOUNT, CURVE = "Hit rate against reuse distance", "Tokens by reuse distance", "LRU hit rate at every capacity"


def distance_plots(
    names: tuple[str, str, str], reuse: Reuse | None, capacity: int | None, rate: float | None
) -> list[Plot]:
    """`rate`: the measured hit rate, which stands at the capacity in the third plot."""
    if reuse is None or not reuse.distances:
        why = "no measured request tells what it hit" if reuse is None else "nothing was sent twice"
        return [missing(names[0], TITLE, f"No reuse distances: {why}.")]
    rows = [
        {"from": one.from_tokens, "to": one.to_tokens, "rate": one.rate, "tokens": one.tokens}
        for one in reuse.distances
    ]
    ends = [one.to_tokens for one in reuse.distances] + [one.from_tokens for one in reuse.distances]
    low, high = min(ends), max([*ends, *([_ROOM * capacity] if capacity else [])])
    scale = LOG | {"domain": [low, high]}
    across = quantity("from", "distinct tokens sent since", scale=scale, axis={"format": "~s"})
    told = tips(**{"from": ("from, tokens", ",.0f"), "to": ("to, tokens", ",.0f"), "rate": ("from the cache", ".1%"),
                   "tokens": ("prompt tokens", ",d")})  # fmt: skip
    both: dict[str, Any] = {"x": across, "x2": {"field": "to"}, "y2": {"datum": 0}, "tooltip": told}
    bar = {"type": "rect", "stroke": CARD, "strokeWidth": 1}
    mark = _capacity(capacity, across)
    rate_up = upright("rate", scale=SHARE, form=".0%")
    # A bar of no height would look as if nothing was known.
    of_none = [row for row in rows if not row["rate"]]
    line = {"type": "rule", "color": HIT, "strokeWidth": 3}
    none = [layer(line, of_none, x=across, x2={"field": "to"}, y=rate_up)] if of_none else []
    return [
        plot(names[0], TITLE, "% of such tokens",
             [layer(bar | {"color": HIT}, rows, y=rate_up, **both), *none, *mark]),
        plot(names[1], AMOUNT, "prompt tokens",
             [layer(bar | {"color": OTHER}, rows, y=upright("tokens"), **both), *mark], height=110),
        _curve(names[2], reuse, capacity, rate),
    ]  # fmt: skip


def _curve(name: str, reuse: Reuse, capacity: int | None, rate: float | None) -> Plot:
    if not reuse.curve:
        return missing(name, CURVE, "No curve: no full block of tokens was sent twice.")
    rows = [{"capacity": at, "rate": share} for at, share in reuse.curve]
    high = max([rows[-1]["capacity"], *([_ROOM * capacity] if capacity else [])])
    scale = LOG | {"domain": [rows[0]["capacity"], high]}
    rows.append({"capacity": high, "rate": rows[-1]["rate"]})
    across = quantity("capacity", "capacity of the cache, tokens", scale=scale, axis={"format": "~s"})
    up = upright("rate", scale=SHARE, form=".0%")
    told = tips(capacity=("capacity, tokens", ",.0f"), rate=("hit rate", ".1%"))
    line = layer({"type": "line", "interpolate": "step-after", "color": TEXT}, rows, x=across, y=up)
    points = layer({"type": "point", "opacity": 0, "size": 120}, rows, x=across, y=up, tooltip=told)
    layers = [line, points, *_capacity(capacity, across)]
    if capacity and rate is not None:
        at: Rows = [{"capacity": capacity, "rate": rate}]
        dot = {"type": "point", "filled": True, "size": 90, "color": HIT, "opacity": 1}
        layers.append(layer(dot, at, x=across, y=up, tooltip=told))
    return plot(name, CURVE, "% of all prompt tokens", layers)


def _capacity(capacity: int | None, across: dict[str, Any]) -> list[dict[str, Any]]:
    """An upright line at the capacity, which the legend names."""
    if not capacity:
        return []
    rows = [{"capacity": capacity, "which": "KV capacity"}]
    named = {
        "color": colours("which", {"KV capacity": BAD}),
        "strokeDash": dashes("which", {"KV capacity": DASHED}),
    }
    return [layer({"type": "rule", "strokeWidth": 1.5}, rows, x=across | {"field": "capacity"}, **named)]
