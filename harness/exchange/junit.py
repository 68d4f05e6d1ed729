"""Gates as JUnit XML, which CI systems show as tests: one case for each gate."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, escaped or not."""


Outcome = Literal["passed", "failure", "error", "skipped"]
"""error: it could not be told; skipped: it was told, but decides nothing."""


@dataclass(frozen=True, slots=True)
class Case:
    """A gate, and what became of it."""

    group: str
    """What it was held against, such as a run."""
    name: str
    """As it was asked for, such as ttft_p99_ratio>1.1."""
    outcome: Outcome
    sentence: str
    """What was found."""


def junit(suite: str, cases: Sequence[Case], at: datetime) -> str:
    """A document with one suite; `at`: when it was judged, with a time zone. No case has a duration of its own."""
    numbers = {outcome: str(sum(case.outcome == outcome for case in cases)) for outcome in get_args(Outcome)}
    totals = {"tests": str(len(cases)), "failures": numbers["failure"], "errors": numbers["error"], "time": "0"}
    root = ET.Element("testsuites", {"name": "kvswarm", **totals})
    timestamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    whole = {"name": _text(suite), **totals, "skipped": numbers["skipped"], "timestamp": timestamp}
    of_suite = ET.SubElement(root, "testsuite", whole)
    for case in cases:
        own = {"classname": _text(case.group), "name": _text(case.name), "time": "0"}
        element, sentence = ET.SubElement(of_suite, "testcase", own), _text(case.sentence)
        if case.outcome == "passed":
            ET.SubElement(element, "system-out").text = sentence
        else:
            ET.SubElement(element, case.outcome, {"type": "gate", "message": sentence}).text = sentence
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def _text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
