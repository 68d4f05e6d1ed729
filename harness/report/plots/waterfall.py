"""Where the hit rate went: one bar for each step, all of them shares of the prompt tokens."""

from __future__ import annotations

from typing import Any

from harness.analysis.numbers import percent, tokens
from harness.analysis.steps import LOSSES
from harness.analysis.waterfall import Waterfall
from harness.report.palette import BAD, CARD, EXPECTED, HIT, MISS, OTHER, TEXT, Spec
from harness.report.plot import Plot, layer, missing, plot, quantity, tips

_STEPS = {
    "shareable": ("shareable", OTHER),
    "granularity": ("\u2212 granularity", MISS),
    "in_flight": ("\u2212 in flight", MISS),
    "capacity": ("\u2212 capacity", MISS),
    "routing": ("\u2212 routing", MISS),
    "expected": ("= expected", EXPECTED),
    "unexplained": ("\u2212 unexplained", BAD),
    "measured": ("= measured", HIT),
}
"""Field of `Steps` -> its name, and the colour of its bar."""
_INSIDE = 0.86
"""A bar that ends beyond this share has its number inside."""
TITLE, UNIT = "Waterfall", "% of all prompt tokens"


def waterfall_plot(name: str, fall: Waterfall) -> Plot:
    steps = fall.steps
    if steps is None:
        return missing(name, TITLE, f"No waterfall: {fall.unknown['steps']}.")
    rows: list[dict[str, Any]] = []
    level = 0
    for field, (label, fill) in _STEPS.items():
        value = getattr(steps, field)
        if value is None:
            continue
        start, end = (level, level - value) if field in LOSSES else (0, value)
        level = end
        low, high = sorted((start / steps.prompt_tokens, end / steps.prompt_tokens))
        share = value / steps.prompt_tokens
        text = f"-{percent(-share)}" if share < 0 else percent(share)
        rows.append({"step": label, "low": low, "high": high, "colour": fill, "text": text, "tokens": tokens(value)})
    order = [row["step"] for row in rows]
    named: Spec = {"field": "step", "type": "nominal", "sort": order, "title": None}
    up: Spec = named | {
        "axis": {"domain": False, "ticks": False, "labelPadding": 6, "labelLimit": 120, "labelOverlap": False}
    }
    across = quantity("low", axis={"format": ".0%", "grid": True}, scale={"domain": [0, 1]})
    told = tips(step=("step", ""), tokens=("tokens", ""), text=("of the prompt tokens", ""))
    colour = {"field": "colour", "type": "nominal", "scale": None}
    layers = [
        layer({"type": "bar", "cornerRadius": 1, "height": {"band": 0.72}}, rows, y=up, x=across, x2={"field": "high"},
              color=colour, tooltip=told)
    ]  # fmt: skip
    ends: tuple[tuple[str, str, Spec], ...] = (
        ("beside", "high", {"align": "left", "dx": 5, "color": TEXT}),
        ("before", "low", {"align": "right", "dx": -5, "color": TEXT}),
        ("inside", "high", {"align": "right", "dx": -6, "color": CARD, "fontWeight": "bold"}),
    )
    for place, at, mark in ends:
        some = [row for row in rows if _place(row["low"], row["high"]) == place]
        if some:
            layers.append(layer({"type": "text"} | mark, some, y=up, x=quantity(at), text={"field": "text"}))
    return plot(name, TITLE, UNIT, layers, height=28 * len(rows))


def _place(low: float, high: float) -> str:
    """Where the number of a bar has room."""
    if high <= _INSIDE:
        return "beside"
    return "inside" if high - low > 1 - _INSIDE else "before"
