"""docs/metrics.md and docs/exchange.md say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.analysis.definitions import DEFINITIONS, Figure, Tool
from harness.analysis.throughput import WINDOWS
from harness.exchange.families import FAMILIES
from harness.exchange.request_series import STEP_NS

DOCS = Path(__file__).parents[2] / "docs"
METRICS, EXCHANGE = ((DOCS / name).read_text() for name in ("metrics.md", "exchange.md"))
SECTIONS = {"ttft": "TTFT", "tpot": "TPOT", "ntpot": "TPOT", "itl": "TPOT", "icl": "TPOT", "e2e": "E2E"}
ALL = [(tool, figure) for tool, figures in DEFINITIONS.items() for figure in figures]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table in the section whose heading begins so."""
    section = re.split(r"^## ", METRICS, flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(heading))
    return [
        [cell.strip(" `") for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]


@pytest.mark.parametrize(("tool", "figure"), ALL)
def test_each_definition_stands_in_its_table(tool: Tool, figure: Figure) -> None:
    definition = DEFINITIONS[tool][figure]
    table = rows(SECTIONS[figure])
    is_named = SECTIONS[figure] == "TPOT"
    found = [
        row
        for row in table
        if tool in row[0].split(", ") and row[-2] == definition.formula and (not is_named or row[1] == figure.upper())
    ]
    assert [row[-1] for row in found] == [definition.column or "none"]


@pytest.mark.parametrize("tool", WINDOWS)
def test_each_tools_time_stands_in_the_table_of_throughput(tool: Tool) -> None:
    assert [row[1] for row in rows("Throughput") if tool in row[0].split(", ")] == [WINDOWS[tool]]


def test_every_exported_metric_is_on_the_page() -> None:
    """By its whole name, or by what comes after kvswarm_server."""
    named = set(re.findall(r"`(\w+)`", EXCHANGE))
    for family in FAMILIES:
        name = family.name if family.kind == "histogram" else family.stored[0]
        assert {name, name.removeprefix("kvswarm_server")} & named, name
        assert set(family.labels) <= {"replica", *re.findall(r"[\w]+", EXCHANGE)}
    assert f"{STEP_NS // 10**9} s apart" in EXCHANGE
