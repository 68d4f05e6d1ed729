"""docs/page.md names the numbers of the code, and the fields and charts that the page has."""

from __future__ import annotations

import re
from pathlib import Path

from harness.swarm.board import POINT_EVERY_S, STRETCH_S
from harness.swarm.buckets import GROWTH
from harness.swarm.history import MOST
from harness.swarm.pages import ASSETS, PLACE
from harness.swarm.prepare import SEATS, USERS
from harness.swarm.webpage import TAB

PAGE = (Path(__file__).parents[2] / "docs" / "page.md").read_text()


def test_the_numbers_are_those_of_the_code() -> None:
    for words in (
        f"every {POINT_EVERY_S:g} s",
        f"in the last {STRETCH_S:g} s",
        f"{MOST} points",
        f"is {USERS} at first",
        f"become {SEATS:,}",
        f"each {round(100 * (GROWTH - 1))} % wider",
        f'"{TAB["title"]}"',
        f"`{PLACE}/runs/RUN`",
    ):
        assert words in PAGE, words


def test_every_chart_is_explained() -> None:
    charts = re.findall(r'new Chart\(\{ title: "([^"]+)"', (ASSETS / "live.js").read_text())
    explained = re.findall(r"^\| ([A-Z][^|]+) \| ", PAGE, re.MULTILINE)
    assert charts == explained
