"""The plots of a report as files: for each an SVG and a PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import vl_convert

from harness.errors import InputError
from harness.report.palette import FONT, LIGHT, TEXT, Spec, painted
from harness.report.plot import CONFIG, VERSION, Plot

WIDTH = 720
"""Of a plot, in pixels; its PNG has twice as many."""


def write_figures(plots: Sequence[Plot], folder: str) -> list[str]:
    """Names of the files, which are replaced if they are there. Raises InputError if one cannot be written."""
    place = Path(folder)
    names: list[str] = []
    try:
        place.mkdir(parents=True, exist_ok=True)
        for plot in plots:
            if plot.spec is not None:
                names += _write(place, plot, plot.spec)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}; give another folder.") from error
    return names


def _write(place: Path, plot: Plot, spec: Spec) -> Sequence[str]:
    svg = vl_convert.vegalite_to_svg(standing_alone(plot, spec), vl_version=VERSION)
    (place / f"{plot.name}.svg").write_text(svg)
    (place / f"{plot.name}.png").write_bytes(vl_convert.svg_to_png(svg, scale=2))
    return f"{plot.name}.svg", f"{plot.name}.png"


def standing_alone(plot: Plot, spec: Spec) -> Spec:
    """With its title, a width of its own, and the light colours on white."""
    title = {
        "text": plot.title, "subtitle": plot.unit, "anchor": "start", "frame": "group", "color": TEXT,
        "subtitleColor": TEXT, "fontSize": 14, "subtitleFontSize": 11.5, "offset": 8, "font": FONT,
    }  # fmt: skip
    config = CONFIG | {"background": LIGHT["card"], "padding": 14}
    return painted(spec | {"width": WIDTH, "title": title, "config": config}, LIGHT)
