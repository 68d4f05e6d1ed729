"""docs/prove.md tells the same as the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from harness.checks.prove_plan import NAMES
from harness.checks.prove_table import MEANINGS
from harness.checks.prove_verdict import EXIT_CODES, Kind

PAGE = (Path(__file__).parents[2] / "docs" / "prove.md").read_text()


def test_every_verdict_is_explained_with_its_exit_code() -> None:
    told = dict(re.findall(r"^\| `([a-z-]+)` \| ([0-2])", PAGE, re.MULTILINE))
    assert told == {kind: str(EXIT_CODES[kind]) for kind in get_args(Kind)}


def test_every_prompt_is_explained_in_its_order() -> None:
    section = PAGE.split("## What is sent")[1].split("```")[0]
    assert tuple(re.findall(r"^\| `([a-z]+)` \|", section, re.MULTILINE)) == NAMES


def test_the_table_on_the_page_has_the_words_of_the_code() -> None:
    rows = dict(re.findall(r"^│ (\w+) +│ (.+?) +│", PAGE, re.MULTILINE))
    assert rows == MEANINGS
