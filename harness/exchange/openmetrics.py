"""Series of samples as OpenMetrics text 1.0, with the time of each sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.exchange.families import FAMILIES, Family

BOUNDS_S = tuple(float(f"{mantissa}e{power}") for power in range(-4, 2) for mantissa in (1, 1.5, 2.2, 3.3, 4.7, 6.8))
"""Upper bounds of the buckets of times: six a decade, from 0.1 ms to 68 s."""


@dataclass(frozen=True, slots=True)
class Scalars:
    """A series of a counter, gauge or info."""

    family: Family
    labels: Mapping[str, str]
    times_ns: Sequence[int]
    """Since the epoch, ascending."""
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Histogram:
    """A series of a histogram with the bounds BOUNDS_S."""

    family: Family
    labels: Mapping[str, str]
    times_ns: Sequence[int]
    counts: npt.NDArray[np.int64]
    """Shape (times, bounds + 1): values at or below each bound so far, and all of them."""
    sums: Sequence[float]


Series = Scalars | Histogram


def lines(series: Sequence[Series]) -> Iterator[str]:
    """The whole text, line by line; a family without samples is left out."""
    for family in FAMILIES:
        own = [one for one in series if one.family == family and len(one.times_ns)]
        if not own:
            continue
        yield f"# TYPE {family.name} {family.kind}\n"
        if family.unit:
            yield f"# UNIT {family.name} {family.unit}\n"
        yield f"# HELP {family.name} {family.help}\n"
        for one in own:
            yield from _of_histogram(one) if isinstance(one, Histogram) else _of_scalars(one)
    yield "# EOF\n"


def stored(series: Sequence[Series]) -> int:
    """How many series Prometheus keeps of them: of a histogram each bucket is one, and its count and its sum are."""
    own = (one for one in series if len(one.times_ns))
    return sum(len(BOUNDS_S) + 3 if isinstance(one, Histogram) else 1 for one in own)


def _of_scalars(series: Scalars) -> Iterator[str]:
    (name,) = series.family.stored
    name_and_labels = f"{name}{_braces(_pairs(series.labels))}"
    for time_ns, value in zip(series.times_ns, series.values, strict=True):
        yield f"{name_and_labels} {_number(value)} {_seconds(time_ns)}\n"


def _of_histogram(series: Histogram) -> Iterator[str]:
    name, pairs = series.family.name, _pairs(series.labels)
    bounds = [*(repr(bound) for bound in BOUNDS_S), "+Inf"]
    buckets = [f"{name}_bucket{_braces([*pairs, *_pairs({'le': bound})])}" for bound in bounds]
    labels = _braces(pairs)
    for time_ns, counts, total in zip(series.times_ns, series.counts.tolist(), series.sums, strict=True):
        at = _seconds(time_ns)
        for bucket, count in zip(buckets, counts, strict=True):
            yield f"{bucket} {count} {at}\n"
        yield f"{name}_count{labels} {counts[-1]} {at}\n"
        yield f"{name}_sum{labels} {_number(total)} {at}\n"


def _pairs(labels: Mapping[str, str]) -> list[str]:
    return [f'{name}="{_escaped(value)}"' for name, value in labels.items()]


def _braces(pairs: Sequence[str]) -> str:
    return f"{{{','.join(pairs)}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _seconds(time_ns: int) -> str:
    """To a ms, which is as fine as Prometheus keeps it."""
    ms = time_ns // 1_000_000
    return f"{ms // 1000}.{ms % 1000:03}"
