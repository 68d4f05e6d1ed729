"""`make demo-sim`'s command on two pressures: a table, a picture, and a word about everything that is not well."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis import load
from harness.analysis.summary import Summary, summarise
from harness.demo_sim import demonstrate, what_is_wrong


@pytest.mark.timeout(280)
def test_it_shows_the_cliff_and_notices_what_is_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert demonstrate(str(tmp_path), 8, ("0.5", "4")) == 0
    shown = capfd.readouterr()
    assert shown.err == "" or "kvswarm: vLLM" not in shown.err
    lines = {
        (engine, pressure): float(measured)
        for engine, pressure, measured in re.findall(
            r"^ ?(\w+) +(0\.5|4) +\d+ +[\d.]+ % +[\d.]+ % +([\d.]+) %", shown.out, re.MULTILINE
        )
    }
    for engine in ("vLLM", "SGLang"):
        assert lines[engine, "0.5"] > lines[engine, "4"] + 20
    (folder,) = tmp_path.glob("*-demo-sim")
    ET.fromstring((folder / "cliff.svg").read_text())
    assert f"Open {folder / 'report.html'} in a browser" in shown.out
    assert "Where hits collapse" in (folder / "report.html").read_text()
    for pressure in ("0.5", "4"):
        for run in load(f"pressure-{pressure}", folder).by_target():
            summary = summarise(run)
            assert list(what_is_wrong("x", summary)) == []
            assert summary.server.preemptions is not None
            assert len(set(run.measured["user"])) == 64
    words_for_what_is_wrong(summary)


def words_for_what_is_wrong(summary: Summary) -> None:
    broken = {
        "no request was measured": replace(summary, groups=()),
        "2 requests failed": replace(summary, groups=tuple(replace(group, failed=2) for group in summary.groups)),
        "do not agree": replace(
            summary, agreement=replace(summary.agreement, cached=replace(summary.agreement.cached, difference=1))
        ),
        "other lengths": replace(summary, planned_lengths=replace(summary.planned_lengths, exact=0)),
        "nothing was reused": replace(summary, hit_rate=replace(summary.hit_rate, cached_tokens=0)),
    }
    for words, other in broken.items():
        (sentence,) = what_is_wrong("x", other)
        assert words in sentence
