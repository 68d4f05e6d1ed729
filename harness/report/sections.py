"""The parts of the report with plots, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis.tables import Footnotes
from harness.report.findings import Findings
from harness.report.hit_sections import cliff, distances, over_time, waterfall
from harness.report.latency_sections import prefill, tails, turns
from harness.report.section import Section
from harness.report.series_sections import health, series
from harness.report.side import Reported


def sections(reported: Reported, found: Sequence[Findings], notes: Footnotes) -> list[Section]:
    """All of them; `notes` collects what the tables have to explain."""
    made = [
        cliff(found),
        waterfall(reported, found, notes),
        over_time(reported, found, notes),
        prefill(found),
        tails(reported, found, notes),
        turns(found),
        distances(found),
        series(reported, found, notes),
        health(found, notes),
    ]
    return [section for section in made if section is not None]
