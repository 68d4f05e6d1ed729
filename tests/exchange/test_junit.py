"""Gates as JUnit XML, by the rules of the schema that Jenkins publishes (junit-10.xsd)."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import datetime, timedelta, timezone

from harness.exchange.junit import Case, junit

CASES = [
    Case("B", "ttft_p99_ratio>1.1", "passed", "1.02 (0.97 to 1.06)"),
    Case("B", 'hit_rate_diff<-0.01 & "more"', "failure", "-0.03 <\x00>"),
    Case("C", "tpot_p50_ratio>1.1", "error", "no request has a TPOT"),
    Case("C", "e2e_p50_ratio>1.1", "skipped", "1.09 (1.05 to 1.13): the interval holds the limit"),
]
AT = datetime(2026, 11, 30, 11, 30, tzinfo=timezone(timedelta(hours=2)))


def test_a_case_for_each_gate_and_the_sums() -> None:
    root = ET.fromstring(junit("compare A B", CASES, AT))
    (suite,) = root
    assert root.tag == "testsuites"
    sums = {"tests": "4", "failures": "1", "errors": "1"}
    assert sums.items() <= root.attrib.items()
    assert sums.items() <= suite.attrib.items()
    assert suite.get("skipped") == "1"
    assert suite.get("timestamp") == "2026-11-30T09:30:00"
    assert [(case.get("classname"), case.get("name"), [child.tag for child in case]) for case in suite] == [
        ("B", "ttft_p99_ratio>1.1", ["system-out"]),
        ("B", 'hit_rate_diff<-0.01 & "more"', ["failure"]),
        ("C", "tpot_p50_ratio>1.1", ["error"]),
        ("C", "e2e_p50_ratio>1.1", ["skipped"]),
    ]
    failure = suite[1][0]
    assert failure.get("message") == failure.text == "-0.03 <\ufffd>"  # XML has no way to write \x00


def test_it_has_only_what_the_schema_allows() -> None:
    allowed = {
        "testsuites": {"name", "time", "tests", "failures", "errors"},
        "testsuite": {"name", "tests", "failures", "errors", "time", "skipped", "timestamp"},
        "testcase": {"name", "time", "classname", "group"},
        "failure": {"type", "message"},
        "error": {"type", "message"},
        "skipped": {"type", "message"},
        "system-out": set(),
    }
    required = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}
    for element in ET.fromstring(junit("s", CASES, AT)).iter():
        assert required.get(element.tag, set()) <= element.attrib.keys() <= allowed[element.tag]
