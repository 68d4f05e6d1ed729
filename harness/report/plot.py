"""Plots as Vega-Lite: what all of them have in common, and the pieces that they are put together from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.report.palette import EDGE, FONT, SOFT, TEXT, Spec

Rows = Sequence[Mapping[str, Any]]

VERSION = "6.4"
"""Of Vega-Lite."""
SOLID, DASHED, DOTTED = (1, 0), (6, 4), (2, 3)
_AXIS_PX = 44
"""Room for the labels at the left, the same everywhere, so that plots below each other share their axis of time."""

CONFIG: Spec = {
    "background": "transparent",
    "font": FONT,
    "padding": {"left": 2, "right": 8, "top": 4, "bottom": 2},
    "view": {"stroke": None},
    "axis": {
        "labelColor": SOFT, "titleColor": SOFT, "titleFontWeight": "normal", "titleFontSize": 11.5,
        "labelFontSize": 11, "gridColor": EDGE, "domainColor": SOFT, "tickColor": EDGE, "gridWidth": 1,
        "labelOverlap": "greedy", "tickCount": 5,
    },
    "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
    "axisX": {"grid": False, "tickSize": 4, "titlePadding": 8},
    "legend": {
        "orient": "top", "title": None, "labelColor": TEXT, "labelFontSize": 11.5, "symbolStrokeWidth": 2.5,
        "symbolSize": 110, "offset": 6, "columnPadding": 12, "labelLimit": 260, "direction": "horizontal",
    },
    "line": {"strokeWidth": 2, "strokeJoin": "round"},
    "text": {"color": TEXT, "fontSize": 11.5},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot, or the sentence that stands in its place."""

    name: str
    """Of its file, and within the page."""
    title: str
    unit: str
    """Of its upright axis, in words that follow the title."""
    spec: Spec | None
    missing: str = ""
    """What was missing, if there is no spec."""


def plot(name: str, title: str, unit: str, layers: Iterable[Spec], height: int = 200) -> Plot:
    """Layers that share their axes."""
    spec: Spec = {"width": "container", "height": height, "autosize": {"type": "fit-x", "contains": "padding"}}
    datasets: dict[str, Rows] = {}
    drawn = []
    for each in layers:
        rows = each["data"]["values"]
        name_of_rows = next((known for known, same in datasets.items() if same == rows), f"rows{len(datasets)}")
        datasets[name_of_rows] = rows
        drawn.append(each | {"data": {"name": name_of_rows}})
    return Plot(name, title, unit, {**spec, "datasets": datasets, "layer": drawn})


@dataclass(frozen=True, slots=True)
class Key:
    """A line of a plot's legend."""

    name: str
    colour: str
    dash: Sequence[int]
    symbol: str
    """stroke or circle."""


def keys(spec: Spec) -> list[Key]:
    """The legend of a plot, which the page writes in words that can wrap; empty: it needs none."""
    found: dict[str, Key] = {}
    for each in spec["layer"]:
        colour, dash = (each["encoding"].get(channel, {}) for channel in ("color", "strokeDash"))
        if not colour.get("legend"):
            continue
        patterns = dash["scale"]["range"] if "scale" in dash else [SOLID] * len(colour["scale"]["domain"])
        for name, paint, pattern in zip(colour["scale"]["domain"], colour["scale"]["range"], patterns, strict=True):
            found[name] = Key(name, paint, pattern, colour["legend"]["symbolType"])
    return list(found.values())


def without_legend(spec: Spec) -> Spec:
    """The same plot; `keys` has what is taken away."""
    layers = [
        each
        | {
            "encoding": {
                channel: of | {"legend": None} if channel in ("color", "strokeDash") and of.get("legend") else of
                for channel, of in each["encoding"].items()
            }
        }
        for each in spec["layer"]
    ]
    return spec | {"layer": layers}


def on_shared_axes(columns: Sequence[Sequence[Plot]]) -> list[list[Plot]]:
    """Plots that stand side by side, with axes that end at the same values: they are there to be compared by eye."""
    shared = [list(column) for column in columns]
    for place in range(max(map(len, shared), default=0)):
        beside = [column for column in shared if place < len(column) and column[place].spec is not None]
        if len({column[place].title for column in beside}) != 1:
            continue
        ends = {axis: _ends([column[place].spec for column in beside], axis) for axis in ("x", "y")}
        for column in beside:
            column[place] = replace(column[place], spec=_ending(column[place].spec or {}, ends))
    return shared


def _ends(specs: Sequence[Spec | None], axis: str) -> tuple[float, float] | None:
    """The least and the most that an axis of numbers has in any of them; None: it is none, or is given otherwise."""
    found: list[float] = []
    for spec in filter(None, specs):
        for each in spec["layer"]:
            on = each["encoding"].get(axis, {})
            scale = on.get("scale") or {}
            if on.get("type") != "quantitative":
                continue
            if "domain" in scale:
                found += scale["domain"]
            elif "field" in on and "domainMax" not in scale:
                rows = spec["datasets"][each["data"]["name"]]
                found += [row[on["field"]] for row in rows if row.get(on["field"]) is not None]
                found += [] if scale.get("type") == "log" else [0]
            else:
                return None
    return (min(found), max(found)) if found else None


def _ending(spec: Spec, ends: Mapping[str, tuple[float, float] | None]) -> Spec:
    def with_domain(each: Spec, axis: str) -> Spec:
        on: Spec = each["encoding"][axis]
        return on | {"scale": {"nice": True} | (on.get("scale") or {}) | {"domain": list(ends[axis] or ())}}

    layers = [
        each
        | {
            "encoding": each["encoding"]
            | {
                axis: with_domain(each, axis)
                for axis, known in ends.items()
                if known and each["encoding"].get(axis, {}).get("type") == "quantitative"
            }
        }
        for each in spec["layer"]
    ]
    return spec | {"layer": layers}


def missing(name: str, title: str, sentence: str) -> Plot:
    return Plot(name, title, "", None, sentence)


def layer(mark: str | Spec, rows: Rows, **encoding: Any) -> Spec:
    """Numbers are cut to what can be seen of them."""
    seen = [{name: _seen(value) for name, value in row.items()} for row in rows]
    return {"data": {"values": seen}, "mark": mark, "encoding": encoding}


def _seen(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


def quantity(field: str, title: str | None = None, **more: Any) -> Spec:
    """A field with a number; `title` is the axis's."""
    return {"field": field, "type": "quantitative", "title": title} | more


def upright(field: str, *, scale: Spec | None = None, form: str = "~s") -> Spec:
    """The y axis; its unit stands above the plot."""
    axis = {"minExtent": _AXIS_PX, "maxExtent": _AXIS_PX, "format": form}
    if form == "~s":
        axis["labelExpr"] = "datum.value ? datum.label : '0'"  # and not 0k
    return quantity(field, axis=axis) | ({"scale": scale} if scale else {})


def seconds(field: str, end_s: float, title: str | None = "seconds since the first measured request") -> Spec:
    """The axis of time, from the first measured request on."""
    return quantity(field, title, scale={"domain": [0, end_s], "nice": False})


def colours(field: str, of: Mapping[str, str], symbol: str = "stroke") -> Spec:
    """A colour for each name, and a legend in this order."""
    scale = {"domain": list(of), "range": list(of.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": {"symbolType": symbol}}


def dashes(field: str, of: Mapping[str, Sequence[int]]) -> Spec:
    """A dash pattern for each name."""
    scale = {"domain": list(of), "range": [list(pattern) for pattern in of.values()]}
    return {"field": field, "type": "nominal", "scale": scale, "legend": {"symbolType": "stroke"}}


def tips(**fields: tuple[str, str]) -> list[Spec]:
    """What a pointer is told: field -> (title, number format; empty: a text)."""
    return [
        {"field": field, "type": "quantitative" if form else "nominal", "title": title}
        | ({"format": form} if form else {})
        for field, (title, form) in fields.items()
    ]


SHARE: Spec = {"domain": [0, 1]}
LOG: Spec = {"type": "log", "nice": False}
