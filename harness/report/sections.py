"""The parts of the report with plots, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from harness.analysis.tables import Footnotes
from harness.report.findings import Findings
from harness.report.hit_sections import distances, over_time, waterfall
from harness.report.latency_sections import prefill, tails, turns
from harness.report.section import Section
from harness.report.series_sections import health, series
from harness.report.side import Reported
from harness.report.sweep_section import sweep


def sections(
    reported: Reported,
    found: Sequence[Findings],
    notes: Footnotes,
    goodput_per_s: Mapping[str, float | None] = MappingProxyType({}),
) -> list[Section]:
    """All of them; `notes` collects what the tables have to explain. `goodput_per_s`: by run, if there is any."""
    made = [
        sweep(found, goodput_per_s),
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
