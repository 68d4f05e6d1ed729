"""Hit rate, TTFT and requests a second of several runs, over what was swept."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from harness.analysis.cliff import Place
from harness.report.palette import EXPECTED, HIT, OTHER, SOFT, TEXT, TIME, Spec
from harness.report.plot import (
    DASHED,
    DOTTED,
    LOG,
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

RUN = "run"
"""In place of a key, where several differ."""
_RATES = {
    "shareable": ("in an endless cache", OTHER, DASHED), "expected": ("expected", EXPECTED, DASHED),
    "measured": ("measured", HIT, SOLID), "counters": ("by the server's counters", OTHER, DOTTED),
}  # fmt: skip
_TIMES = {"ttft_p50_ms": ("p50", TIME, SOLID), "ttft_p99_ms": ("p99", TIME, DASHED)}
_PER_S = {"answered_per_s": ("answered", TEXT, SOLID), "goodput_per_s": ("goodput", EXPECTED, DASHED)}
Looks = Mapping[str, tuple[str, str, Sequence[int]]]
"""Field of `Place` -> name, colour and dashes of its line."""


def cliff_plots(engine: str, key: str, title: str, places: Sequence[Place], is_number: bool) -> list[Plot]:
    """Of one engine. `title`: of the axis of `key`; `is_number`: its values are."""
    across = _across(title, places) if is_number else _in_order(title, places)
    marks = _fits(places, across) if key == "pressure" else []
    rates = {name: look for name, look in _RATES.items() if name != "counters" or not _all_tell(places)}
    file_name = re.sub(r"[^A-Za-z0-9.-]+", "-", engine)
    against = f"by {key}" if key == RUN else f"against {key}"
    percents = upright("value", scale=SHARE, form=".0%")
    amounts = upright("value", scale={"zero": True, "nice": True}, form=",~r")
    drawn = (
        ("rate", "Hit rate", "% of the prompt tokens", rates, percents, (".1%", "of the prompt tokens"), 300),
        ("ttft", "TTFT", "ms", _TIMES, amounts, (",.1f", "ms"), 150),
        ("answered", "Requests answered", "a second", _PER_S, amounts, (",.2f", "a second"), 110),
    )
    return [
        _lines(
            f"cliff-{name}-{file_name}",
            f"{words} {against}",
            unit,
            looks,
            places,
            across,
            up,
            told,
            marks[: len(marks) if name == "rate" else 1],
            height,
            key,
        )
        for name, words, unit, looks, up, told, height in drawn
    ]


def _lines(
    name: str, title: str, unit: str, looks: Looks, places: Sequence[Place], across: Spec, up: Spec,
    told: tuple[str, str], marks: Sequence[Spec], height: int, key: str,
) -> Plot:  # fmt: skip
    rows = [
        {"which": which, "at": _at(one, across), "text": one.value, "value": getattr(one, field)}
        for field, (which, *_) in looks.items()
        for one in places
        if getattr(one, field) is not None
    ]
    if not rows:
        return missing(name, title, f"{title}: no run tells it.")
    present = {row["which"] for row in rows}
    known = [look for look in looks.values() if look[0] in present]
    form, words = told
    # Between values that are no numbers there is nothing to draw a line through.
    is_line = across["type"] == "quantitative"
    mark: Spec = {"type": "line", "point": {"filled": True, "size": 45}}
    if not is_line:
        known = [(which, OTHER if dash == DASHED and colour == TIME else colour, dash) for which, colour, dash in known]
        mark = {"type": "point", "filled": True, "size": 60, "opacity": 1}
    lines = layer(
        mark, rows, x=across, y=up,
        color=colours("which", {which: colour for which, colour, _ in known}, "stroke" if is_line else "circle"),
        **({"strokeDash": dashes("which", {which: dash for which, _, dash in known})} if is_line else {}),
        tooltip=tips(which=("", ""), text=(key, ""), value=(words, form)),
    )  # fmt: skip
    rings = [row for row in rows if row["which"] == "expected"]
    ring = layer({"type": "point", "size": 150, "strokeWidth": 1.5, "color": EXPECTED}, rings, x=across, y=up)
    return plot(name, title, unit, [*marks, lines, *([ring] if rings else [])], height=height)


def _at(one: Place, across: Spec) -> float | str:
    return float(one.value) if across["type"] == "quantitative" else one.value


def _all_tell(places: Sequence[Place]) -> bool:
    """Whether the answers say what they hit, so that counters are not needed for it."""
    return all(one.measured is not None for one in places)


def _across(title: str, places: Sequence[Place]) -> Spec:
    """By number: as logarithms if these are more even, as 1, 2, 4, 8 are."""
    values = [float(one.value) for one in places]
    axis = {"values": values, "format": "~g", "labelOverlap": "greedy"}
    low, high = min(values), max(values)
    if low > 0 and _evenness([math.log(value) for value in values]) > _evenness(values):
        return quantity("at", title, scale=LOG | {"domain": [low / 1.15, high * 1.15]}, axis=axis)
    room = 0.05 * (high - low) or 1
    return quantity("at", title, scale={"domain": [low - room, high + room], "nice": False, "zero": False}, axis=axis)


def _evenness(values: Sequence[float]) -> float:
    """The smallest of the gaps between them over the largest."""
    gaps: list[float] = [abs(other - one) for one, other in pairwise(values)]
    return min(gaps) / max(gaps) if any(gaps) else 1.0


def _in_order(title: str, places: Sequence[Place]) -> Spec:
    names = [one.value for one in places]
    axis = {"labelAngle": 0, "labelLimit": 140, "labelOverlap": "greedy"}
    return {"field": "at", "type": "ordinal", "title": title, "sort": names, "scale": {"type": "point"}, "axis": axis}


def _fits(places: Sequence[Place], across: Spec) -> list[dict[str, Any]]:
    """A line at 1, beyond which not everything fits."""
    values = [float(one.value) for one in places]
    if not min(values) <= 1 <= max(values):
        return []
    marks = [layer({"type": "rule", "color": SOFT, "strokeDash": [2, 3]}, [{"at": 1}], x=across)]
    for words, is_there, align in (("fits", min(values) < 1, "right"), ("does not fit", max(values) > 1, "left")):
        look = {"type": "text", "align": align, "baseline": "bottom", "dy": -4, "color": SOFT}
        if is_there:
            row = [{"at": 1, "words": words}]
            text = look | {"dx": -6 if align == "right" else 6}
            marks.append(layer(text, row, x=across, y={"value": "height"}, text={"field": "words"}))
    return marks
