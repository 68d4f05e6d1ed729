"""The notebook of docs/ runs from its top, and its outputs are what stands in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.notebook import ROOT, executed, read

NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


def shown(cell: Any) -> tuple[str, list[str]]:
    """(what a code cell's outputs say as text, what else they are)."""
    outputs = cell.get("outputs", [])
    texts = [output.get("text", output.get("data", {}).get("text/plain", "")) for output in outputs]
    kinds = [kind for output in outputs for kind in sorted(output.get("data", {}))]
    return "\n".join(texts), kinds


def numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.ipynb")), ids=lambda path: path.name)
def test_the_outputs_are_what_the_cells_say_today(path: Path) -> None:
    kept = read(path)
    fresh = executed(path)
    has_output = 0
    for number, (before, after) in enumerate(zip(kept.cells, fresh.cells, strict=True)):
        (text, kinds), (text_now, kinds_now) = shown(before), shown(after)
        has_output += bool(text)
        assert kinds_now == kinds, f"cell {number}: run python -m tests.notebook docs/{path.name}"
        assert NUMBER.sub("#", text_now).split() == NUMBER.sub("#", text).split(), f"cell {number}"
        assert numbers(text_now) == pytest.approx(numbers(text), rel=1e-6), f"cell {number}"
    assert has_output >= 5
