"""docs/persist.md tells the same as the code."""

from __future__ import annotations

import re
from pathlib import Path

from harness.checks.persist_evidence import EXIT_CODES

PAGE = (Path(__file__).parents[2] / "docs" / "persist.md").read_text()


def test_every_verdict_is_explained() -> None:
    told = {verdict: int(code) for verdict, code in re.findall(r"^\| `([a-z-]+)` \| (\d) \|", PAGE, re.MULTILINE)}
    expected: dict[str, int] = {**dict(EXIT_CODES.items()), "restarted": 2, "unanswered": 2}
    assert told == expected


def test_the_file_is_called_what_it_is() -> None:
    assert "A saved cache is the conversation" in PAGE
    assert "0600" in PAGE
