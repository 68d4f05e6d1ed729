"""What another load generator measured, and our figures next to it: by its definitions, and by ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from harness.analysis.definitions import DEFINITIONS, Sample, Tool
from harness.analysis.hit_rate import of_requests
from harness.analysis.run import TargetRun
from harness.analysis.throughput import WINDOWS, Throughput, throughput
from harness.exchange.measured import STATISTICS, Measured, Rate, Statistic

UNCHECKED = (
    "Whether both sent the same prompts at the same load to the same server is for you to know: no file says enough."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One figure, three times. None: not known."""

    figure: str
    statistic: str
    """mean, p50, ...; "per s" of a rate, "share" of the hit rate."""
    theirs: float
    as_theirs: float | None
    """Ours, by their definition."""
    ours: float | None
    """By our own, of the column that comes nearest."""
    column: str | None
    """That column; None: there is none, or it is no matter of one column."""


@dataclass(frozen=True, slots=True)
class Beside:
    """One load of another tool next to one target of a run of ours. Times in ms, rates a second."""

    run_id: str
    target: str
    measured: Measured
    lines: tuple[Line, ...]
    definitions: tuple[str, ...]
    """Of each figure, as the tool means it, in our columns."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def beside(run_id: str, run: TargetRun, measured: Measured) -> Beside:
    """Times are of the successful requests whose times count; a rate is of all successful ones."""
    return Beside(
        run_id,
        run.target.name,
        measured,
        lines=(*_times(run, measured), *_rates(run, measured), *_hit_rate(run, measured)),
        definitions=tuple(_definitions(measured)),
    )


def _times(run: TargetRun, measured: Measured) -> Iterator[Line]:
    ok = run.counted[run.counted["status"] == "ok"]
    own = {definition.column: definition.of(ok) for definition in DEFINITIONS["kvswarm"].values()}
    for figure, values in measured.times.items():
        definition = DEFINITIONS[measured.tool][figure]
        sample, ours = definition.of(ok), own.get(definition.column)
        for statistic, theirs in values.items():
            nearest = None if ours is None else _value(ours, statistic)
            yield Line(figure, statistic, theirs, _value(sample, statistic), nearest, definition.column)


def _value(sample: Sample, statistic: Statistic) -> float | None:
    share = STATISTICS[statistic]
    return sample.mean() if share is None else sample.quantile(share)


def _rates(run: TargetRun, measured: Measured) -> Iterator[Line]:
    as_theirs, ours = _all_rates(run, measured.tool), _all_rates(run, "kvswarm")
    for rate, theirs in measured.per_s.items():
        yield Line(rate, "per s", theirs, as_theirs.get(rate), ours.get(rate), None)


def _all_rates(run: TargetRun, tool: Tool) -> dict[Rate, float | None]:
    found: Throughput | None = throughput(run, tool)
    if found is None:
        return {}
    return {
        "requests": found.requests,
        "input tokens": found.input_tokens,
        "output tokens": found.output_tokens,
        "tokens": found.total_tokens,
    }


def _hit_rate(run: TargetRun, measured: Measured) -> Iterator[Line]:
    if measured.hit_rate is not None:
        yield Line("hit rate", "share", measured.hit_rate, None, of_requests(run.measured).rate, "cached_tokens")


def _definitions(measured: Measured) -> Iterator[str]:
    for figure in measured.times:
        yield f"{figure}: {DEFINITIONS[measured.tool][figure].formula}"
    if measured.per_s:
        yield f"per s: {WINDOWS[measured.tool]}; ours: {WINDOWS['kvswarm']}"
    if "good requests" in measured.per_s:
        yield "good requests: by limits that the file does not tell; ours: kvswarm find --slo"
    if measured.hit_rate is not None:
        yield "hit rate: cached / prompt tokens, both summed; ours: over the requests that report both"
