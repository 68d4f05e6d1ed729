"""The cliff: table and picture say the same, and what is not known stays unknown."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from rich.console import Console

from harness.analysis.cliff import Place, cliff_table
from harness.analysis.cliff_plot import cliff_plot

SVG = "{http://www.w3.org/2000/svg}"


def of(pressure: str, measured: float | None, expected: float | None, ttft_ms: float | None) -> Place:
    return Place(pressure, 100, 0.9, expected, measured, 0.25, ttft_ms, None if ttft_ms is None else 3 * ttft_ms)


CLIFFS = {
    "a & b": [of("0.5", 0.88, 0.88, 20.0), of("1", 0.8, 0.7, 30.0), of("2", 0.4, 0.41, 300.0)],
    "other": [of("0.5", 0.5, 0.5, 40.0), of("1", None, None, None), of("2", 0.3, 0.3, 250.0)],
}


def numbers(element: ET.Element, *names: str) -> list[float]:
    return [float(str(element.get(name))) for name in names]


def test_the_table_has_a_line_for_each_run_and_fits_into_80_columns() -> None:
    console = Console(width=80, record=True)
    console.print(cliff_table(CLIFFS))
    shown = console.export_text()
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "a & b 1 100 90.0 % 70.0 % 80.0 % -10.00 25.0 % 30.0 90.0" in lines
    assert "other 1 100 90.0 % - - - 25.0 % - -" in lines
    assert "…" not in shown


def test_the_picture_marks_what_is_known_on_one_scale_for_all() -> None:
    picture = ET.fromstring(cliff_plot("agents", "so many", CLIFFS))
    circles = [(circle.get("class"), numbers(circle, "cx", "cy")) for circle in picture.iter(f"{SVG}circle")]
    for kind in ("measured", "expected"):
        assert sum(1 for name, _ in circles if name == kind) == 5 + 1  # and one in the key
    dots = [place for name, place in circles if name == "dot"]
    assert [x for x, _ in dots] == sorted(x for x, _ in dots)
    heights = [y for _, y in dots]
    # 20, 30 and 300 ms in one panel, 40 and 250 ms in the other: what is slower stands higher.
    assert heights[0] > heights[1] > heights[3] > heights[4] > heights[2]
    texts = {text.text for text in picture.iter(f"{SVG}text")}
    assert {"a & b", "other", "88%", "300", "0.5", "agents", "so many", "fits", "does not fit"} <= texts


@pytest.mark.parametrize(
    ("pressures", "between"), [(["0.5", "1", "2"], (1, 1)), (["0.5", "2", "4"], (0, 1)), (["0.25", "0.5"], None)]
)
def test_the_line_stands_where_not_everything_fits_any_more(pressures: list[str], between: Any) -> None:
    places = [of(pressure, 0.5, 0.5, 10.0) for pressure in pressures]
    picture = ET.fromstring(cliff_plot("", "", {"e": places}))
    lines = [numbers(line, "x1")[0] for line in picture.iter(f"{SVG}line") if line.get("class") == "full"]
    dots = [numbers(circle, "cx")[0] for circle in picture.iter(f"{SVG}circle") if circle.get("class") == "dot"]
    if between is None:
        assert lines == []
    else:
        assert lines == [(dots[between[0]] + dots[between[1]]) / 2]


def test_runs_of_which_nothing_is_known_are_still_a_picture() -> None:
    ET.fromstring(cliff_plot("", "", {"e": [Place("1", 0, None, None, None, None, None, None)]}))
