"""What a result file of another load generator says, in our words and units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.analysis.definitions import Figure, Tool

Statistic = Literal["mean", "p50", "p90", "p95", "p99"]
STATISTICS: Mapping[Statistic, float | None] = {"mean": None, "p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
"""Statistic -> the share of the values that lies below; None: it is the mean."""
NAMES: Mapping[Statistic, Sequence[str]] = {
    "mean": ("mean",),
    "p50": ("median", "p50"),
    "p90": ("p90",),
    "p95": ("p95",),
    "p99": ("p99",),
}
"""Statistic -> what vllm bench and inference-perf call it."""
Rate = Literal["requests", "input tokens", "output tokens", "tokens", "good requests"]
Times = Mapping[Figure, Mapping[Statistic, float]]
"""In ms; what the file does not tell is not there."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One load as another tool measured it. None, or not there: the file does not tell."""

    tool: Tool
    version: str | None
    where: str
    """File, and which of its loads."""
    successful: int | None
    failed: int | None
    """Failed, or cut off at the end."""
    times: Times
    per_s: Mapping[Rate, float]
    hit_rate: float | None
    """Cached / prompt tokens, as the tool sums them."""
    remarks: tuple[str, ...]
    """Sentences: what in this file is to be read with care."""
    silent: tuple[str, ...]
    """Sentences: what files of this tool never tell, or tell in their own way."""


def known(values: Mapping[Statistic, float | None]) -> dict[Statistic, float]:
    return {name: value for name, value in values.items() if value is not None}


def known_rates(values: Mapping[Rate, float | None]) -> dict[Rate, float]:
    return {name: value for name, value in values.items() if value is not None}


def without_zeros(times: Times, tool: str) -> tuple[Times, tuple[str, ...]]:
    """The figures that have values, and a remark on each that is 0 throughout: `tool` writes 0 where it has none."""
    zero = [figure for figure, values in times.items() if values and not any(values.values())]
    remarks = tuple(f"{figure} is 0 throughout: {tool} writes 0 where it has no value." for figure in zero)
    return {figure: values for figure, values in times.items() if any(values.values())}, remarks
