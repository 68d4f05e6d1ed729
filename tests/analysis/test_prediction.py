"""Hit rates beside the model's: table and picture say the same, and what is not known stays unknown."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from rich.console import Console

from harness.analysis.prediction import Point, prediction_plot, prediction_table

FOUND = [Point("0.5", 0.9, 0.9, 100.0), Point("1", 0.6, 0.61, 250.0), Point("a<b", None, None, None)]
SVG = "{http://www.w3.org/2000/svg}"


def test_the_table_says_how_far_the_model_is_off() -> None:
    console = Console(width=100, record=True)
    console.print(prediction_table("pressure", FOUND))
    lines = [line.split() for line in console.export_text().splitlines()]
    assert ["0.5", "90.0", "%", "90.0", "%", "0.00", "100"] in lines
    assert ["1", "60.0", "%", "61.0", "%", "+1.00", "250"] in lines
    assert ["a<b", "-", "-", "-", "-"] in lines


def test_the_picture_has_a_mark_for_each_value_that_is_known() -> None:
    picture = ET.fromstring(prediction_plot("documents & more", "pressure", FOUND))
    marks = [circle.get("class") for circle in picture.iter(f"{SVG}circle")]
    assert marks.count("measured") == marks.count("expected") == 2 + 1  # and one each in the legend
    (line,) = [line for line in picture.iter(f"{SVG}polyline") if line.get("class") == "line"]
    first, second = (tuple(map(float, place.split(","))) for place in str(line.get("points")).split())
    assert first[0] < second[0]
    assert first[1] < second[1]  # a lower rate stands lower
    assert {"0.5", "1", "a<b", "pressure", "documents & more"} <= {text.text for text in picture.iter(f"{SVG}text")}


def test_a_sweep_of_which_nothing_is_known_is_still_a_picture() -> None:
    ET.fromstring(prediction_plot("t", "k", [Point("1", None, None, None)]))
