"""What client and server saw, plot below plot on one axis of time, and the health of the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.report.palette import BAD, Spec
from harness.report.plot import (
    LOG,
    Plot,
    Rows,
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
from harness.report.series import Line
from harness.report.watch import Marked

Look = tuple[str, Sequence[int]]
"""Colour and dash pattern."""


def line_plot(
    name: str,
    title: str,
    unit: str,
    end_s: float,
    lines: Sequence[Line],
    looks: Mapping[str, Look],
    marked: Sequence[Marked] = (),
    *,
    lacking: str,
    form: str = ",~r",
    log: bool = False,
    height: int = 120,
    most: float | None = None,
    last: bool = False,
) -> Plot:
    """`lacking`: why there may be no lines. `most`: where the axis ends at least. `marked` is shaded.
    `last`: nothing stands below it, so that its axis is named.
    """
    shown = [line for line in lines if line.values]
    if not shown:
        return missing(name, title, lacking)
    rows = [
        {"which": line.name, "at": at, "value": max(value, 0.01) if log else value}
        for line in shown
        for at, value in line.points
        if value is not None
    ]
    scale: dict[str, Any] = dict(LOG) if log else {"zero": True, "nice": True}
    if most is not None:
        scale |= {"domainMax": most}
    own = {line.name: looks[line.name] for line in shown}
    up = upright("value", scale=scale, form=form)
    if log:
        up["axis"]["values"] = [step * 10.0**power for power in range(-2, 7) for step in (1, 2, 5)]
    one_name: Spec = {} if len(own) > 1 else {"legend": None}
    axis = seconds("at", end_s) if last else seconds("at", end_s, None)
    drawn = layer(
        {"type": "line", "point": {"filled": True, "size": 14} if len(rows) < 200 else False},
        rows,
        x=axis,
        y=up,
        color=colours("which", {which: colour for which, (colour, _) in own.items()}) | one_name,
        strokeDash=dashes("which", {which: dash for which, (_, dash) in own.items()}) | one_name,
        tooltip=tips(which=("", ""), at=("seconds", ".1f"), value=(unit, ",.3~f" if form != ".0%" else ".1%")),
    )
    return plot(name, title, unit, [*_shades(marked, end_s, axis), drawn], height=height)


def _shades(marked: Sequence[Marked], end_s: float, axis: Spec) -> list[Spec]:
    if not marked:
        return []
    rows: Rows = [
        {"at": one.start_s, "to": min(one.end_s, end_s), "why": one.why, "worker": one.worker} for one in marked
    ]
    return [
        layer(
            {"type": "rect", "color": BAD, "opacity": 0.18},
            rows,
            x=axis,
            x2={"field": "to"},
            tooltip=[*tips(why=("bottleneck", "")), quantity("worker", format="d")],
        )
    ]
