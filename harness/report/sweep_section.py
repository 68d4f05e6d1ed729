"""What a sweep shows: hit rate, TTFT and requests a second over the values of what was swept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from harness.analysis.cliff import MEANING, Place, cliff_table, place
from harness.analysis.numbers import between, percent, with_unit
from harness.analysis.swept import Swept, swept
from harness.report.findings import Findings
from harness.report.markup import data_table, escaped, folded, paragraph, rich_table, term
from harness.report.plot import on_shared_axes
from harness.report.plots.cliff import RUN, cliff_plots
from harness.report.section import Section

_UNITS = {
    "pressure": "pressure: working set as a multiple of the KV capacity",
    "rate": "rate: sessions that arrive each second",
    "users": "users: live sessions at a time",
}
"""Key -> what stands at the axis."""
SWEEP = "sweep"
"""Key of the part."""
_STEEP = 0.05
"""Of the prompt tokens: where the hit rate falls by as much from one run to the next, it is told."""
MEANING_OF_RATES = "answered/s: successful requests a second of the measured phase."


@dataclass(frozen=True, slots=True)
class Sweep:
    """Several runs of one scenario."""

    swept: Swept
    engines: dict[str, list[Place]]
    """Engine -> its runs by rising value; in the order of the runs where the values are no numbers."""
    again: int
    """Runs that are not among them, as a later one has the same value."""

    @property
    def key(self) -> str:
        return self.swept.keys[0] if self.swept.is_one_key else RUN

    def sentences(self) -> list[str]:
        """What the runs show together, one for each engine."""
        return [
            f"{engine}: {sentence[0].lower()}{sentence[1:]}" if len(self.engines) > 1 else sentence
            for engine, places in self.engines.items()
            if (sentence := _sentence(self, places))
        ]


def sweep_of(
    found: Sequence[Findings], goodput_per_s: Mapping[str, float | None] = MappingProxyType({})
) -> Sweep | None:
    """None: they are not runs of one scenario under several settings. `goodput_per_s`: by run, if there is any."""
    runs = {one.side.run.manifest.run_id: one.side.run.manifest for one in found}
    told = swept(list(runs.values()))
    if told is None:
        return None
    number_of = {run_id: number for number, run_id in enumerate(runs)}
    alike = Counter((one.side.run.manifest.run_id, _engine(one)) for one in found)
    engines: dict[str, dict[str, tuple[int, Place]]] = {}
    for one in sorted(found, key=lambda one: one.side.run.manifest.started_ns):
        run_id = one.side.run.manifest.run_id
        name = _engine(one) if alike[run_id, _engine(one)] == 1 else f"{_engine(one)}, {one.side.summary.target}"
        number = number_of[run_id]
        value = told.values[number][0] if told.is_one_key else str(number + 1)
        of_run = place(value, one.side.summary, _measured_s(one), goodput_per_s.get(run_id))
        engines.setdefault(name, {})[value] = number, of_run
    order = told.numbers or range(len(runs))
    placed = {
        name: [one for _, one in sorted(places.values(), key=lambda pair: order[pair[0]])]
        for name, places in engines.items()
    }
    if all(len(places) == 1 for places in placed.values()):
        return None
    return Sweep(told, placed, len(found) - sum(map(len, placed.values())))


def _engine(one: Findings) -> str:
    return str(one.side.summary.identity.get("engine", one.side.summary.target))


def _measured_s(one: Findings) -> float:
    return sum(phase.end_ns - phase.start_ns for phase in one.side.of_target.phases if phase.phase == "measure") / 1e9


def _sentence(of: Sweep, places: Sequence[Place]) -> str:
    """Where the hit rate goes, its steepest step, and what TTFT does meanwhile."""
    known = [one for one in places if one.measured is not None]
    if len(known) < 2:
        return ""
    if of.swept.numbers is None:
        told = (f"{one.value} {percent(one.measured)} ({with_unit(one.ttft_p50_ms)})" for one in known)
        return f"Hit rate by {of.key} (and median TTFT): {', '.join(told)}."
    first, last = known[0], known[-1]
    start, end = first.measured or 0, last.measured or 0
    text = (
        f"The hit rate {_goes(start, end, 0.005)} from {percent(start)} at {_at(of.key, first.value)} to "
        f"{percent(end)} at {_at(of.key, last.value)}"
    )
    steps = [((one.measured or 0) - (other.measured or 0), one, other) for one, other in pairwise(known)]
    drop, before, after = max(steps, key=lambda step: step[0])
    if len(known) > 2 and drop >= _STEEP:
        text += (
            f", most steeply between {before.value} and {after.value} ({percent(before.measured)} to "
            f"{percent(after.measured)})"
        )
    if first.ttft_p50_ms is not None and last.ttft_p50_ms is not None:
        one, other = first.ttft_p50_ms, last.ttft_p50_ms
        text += f"; median TTFT {_goes(one, other, 0.01 * one)} from {between(one, other, with_unit)}"
    return f"{text}."


def _at(key: str, value: str) -> str:
    """Such as pressure 2."""
    return {"users": f"{value} users", "rate": f"{value} sessions/s"}.get(key, f"{key} {value}")


def _goes(start: float, end: float, least: float) -> str:
    return "goes" if abs(end - start) < least else "falls" if end < start else "rises"


def sweep(
    found: Sequence[Findings], goodput_per_s: Mapping[str, float | None] = MappingProxyType({})
) -> Section | None:
    """None: as `sweep_of`."""
    of = sweep_of(found, goodput_per_s)
    if of is None:
        return None
    is_number = of.swept.numbers is not None
    columns = [
        cliff_plots(engine, of.key, _UNITS.get(of.key, of.key), places, is_number)
        for engine, places in of.engines.items()
    ]
    headings = list(of.engines) if len(of.engines) > 1 else []
    columns = on_shared_axes(columns)
    if len(columns) == 1:
        columns = [columns[0][:1], columns[0][1:]]
    table = rich_table(cliff_table(of.engines, of.key, rates=True))
    meaning = paragraph(escaped(f"{MEANING} {MEANING_OF_RATES}"), "note")
    after = [_settings(of), folded("In numbers", table + meaning)]
    return Section(SWEEP, _title(of), _lead(of), columns, headings, after)


def _title(of: Sweep) -> str:
    if of.key == "pressure":
        return "Where hits collapse"
    return f"The sweep over {of.key}" if of.swept.is_one_key else "Run by run"


def _lead(of: Sweep) -> str:
    again = (
        f" Of runs at the same value the last one is drawn ({of.again} {'is' if of.again == 1 else 'are'} not)."
        if of.again
        else ""
    )
    if not of.swept.is_one_key:
        keys = f"{', '.join(of.swept.keys[:-1])} and {of.swept.keys[-1]}"
        return escaped(
            f"These runs differ in {keys}. So they stand in the order in which they were named, and what changes from "
            f"one to the next cannot be put down to one of them.{again}"
        )
    if of.key == "pressure":
        return (
            f"Runs under rising {term('pressure', 'pressure')}, as it was asked for. Beyond 1 not everything fits that "
            f"sessions come back to.{again}"
        )
    return (
        f"Runs that differ in {escaped(of.key)} alone: {term('hit-rate', 'hit rate')}, measured and "
        f"{term('expected', 'expected')}, {term('ttft', 'TTFT')}, and requests answered a second.{again}"
    )


def _settings(of: Sweep) -> str:
    """What each run was told, where that is more than one key."""
    if of.swept.is_one_key:
        return ""
    rows = [(str(number), *values) for number, values in enumerate(of.swept.values, start=1)]
    return folded("What differs", data_table((RUN, *of.swept.keys), rows))
