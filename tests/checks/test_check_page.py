"""docs/check.md tells the same as the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from harness.checks.by_hand import NOT_AS_IT_SHOULD, UNCLEAR
from harness.checks.verdict import Kind

PAGE = (Path(__file__).parents[2] / "docs" / "check.md").read_text()


def test_every_verdict_is_explained() -> None:
    verdicts = PAGE.split("## Verdicts")[1].split("\n\n")[1]
    assert re.findall(r"^\| `([a-z-]+)` \|", verdicts, re.MULTILINE) == list(get_args(Kind))


def test_exit_codes() -> None:
    codes = dict(re.findall(r"^\| (\d) \| (.*) \|$", PAGE, re.MULTILINE))
    assert "`caching-off`" in codes[str(NOT_AS_IT_SHOULD)]
    assert "`unclear`" in codes[str(UNCLEAR)]
    assert set(codes) == {"0", "2", str(NOT_AS_IT_SHOULD), str(UNCLEAR)}
