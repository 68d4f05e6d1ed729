"""What another load generator measured, and our figures next to it: by its definitions, and by ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from harness.analysis.definitions import DEFINITIONS
from harness.analysis.throughput import WINDOWS
from harness.exchange.measured import Measured
from harness.exchange.ours import Ours

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


def beside(ours: Ours, measured: Measured) -> Beside:
    return Beside(
        ours.run_id,
        ours.target,
        measured,
        lines=(*_times(ours, measured), *_rates(ours, measured), *_hit_rate(ours, measured)),
        definitions=tuple(_definitions(measured)),
    )


def _times(ours: Ours, measured: Measured) -> Iterator[Line]:
    own = {definition.column: definition for definition in DEFINITIONS["kvswarm"].values()}
    for figure, values in measured.times.items():
        definition = DEFINITIONS[measured.tool][figure]
        nearest = None if definition.column is None else ours.times(own[definition.column])
        as_theirs = ours.times(definition)
        for statistic, theirs in values.items():
            own_value = None if nearest is None else nearest[statistic]
            yield Line(figure, statistic, theirs, as_theirs[statistic], own_value, definition.column)


def _rates(ours: Ours, measured: Measured) -> Iterator[Line]:
    as_theirs, own = ours.rates(measured.tool), ours.rates("kvswarm")
    for rate, theirs in measured.per_s.items():
        yield Line(rate, "per s", theirs, as_theirs.get(rate), own.get(rate), None)


def _hit_rate(ours: Ours, measured: Measured) -> Iterator[Line]:
    if measured.hit_rate is not None:
        yield Line("hit rate", "share", measured.hit_rate, None, ours.hit_rate, "cached_tokens")


def _definitions(measured: Measured) -> Iterator[str]:
    for figure in measured.times:
        yield f"{figure}: {DEFINITIONS[measured.tool][figure].formula}"
    if measured.per_s:
        yield f"per s: {WINDOWS[measured.tool]}; ours: {WINDOWS['kvswarm']}"
    if "good requests" in measured.per_s:
        yield "good requests: by limits that the file does not tell; ours: kvswarm find --slo"
    if measured.hit_rate is not None:
        yield "hit rate: cached / prompt tokens, both summed; ours: over the requests that report both"
