"""GuideLLM's report (benchmarks.json), of format 2: GuideLLM 0.7 and 0.8.

Read from benchmark/schemas/report.py and benchmark/schemas/metrics.py of GuideLLM 0.8.1.
"""

from __future__ import annotations

from typing import Any

from harness.analysis.definitions import Figure
from harness.errors import InputError
from harness.exchange.document import Document
from harness.exchange.measured import Measured, Statistic, Times, known, known_rates, without_zeros

FORMAT = 2
_FIGURES: dict[Figure, tuple[str, float]] = {
    "ttft": ("time_to_first_token_ms", 1.0),
    "tpot": ("time_per_output_token_ms", 1.0),
    "itl": ("inter_token_latency_ms", 1.0),
    "e2e": ("request_latency", 1e3),
}
"""Figure -> its key, and ms in its unit."""
_STATISTICS: dict[Statistic, tuple[str, ...]] = {
    "mean": ("mean",),
    "p50": ("percentiles", "p50"),
    "p90": ("percentiles", "p90"),
    "p95": ("percentiles", "p95"),
    "p99": ("percentiles", "p99"),
}
SILENT = (
    "cached tokens are there for single requests only, and not in its sums",
    "a request without a time counts as 0 in its E2E, TPOT and ITL, and is not in its TTFT",
    "TTFT is of requests that waited for a first token within its window, ITL of those that were answered in it",
    "times are of the successful requests; warm-up and cool-down are cut off by its own rule",
)


def is_one(document: Document) -> bool:
    return isinstance(document.get("benchmarks"), list) and isinstance(document.get("metadata"), dict)


def read(document: Document) -> list[Measured]:
    """One for each benchmark of the report. Raises InputError for another format, or if a number is none."""
    version = document.get("metadata", "guidellm_version")
    if document.get("metadata", "version") != FORMAT:
        raise InputError(
            f"{document.where} is a report of GuideLLM {version or 'of an unknown version'} in format "
            f"{document.get('metadata', 'version')}; kvswarm reads format {FORMAT}, which GuideLLM 0.7 and 0.8 write."
        )
    benchmarks: list[Any] = document.content["benchmarks"]
    if not benchmarks:
        raise InputError(f"{document.where} is a report of GuideLLM without a benchmark: there is nothing in it.")
    return [
        _benchmark(Document(f"{document.where}, benchmark {number} of {len(benchmarks)}", benchmark), version)
        for number, benchmark in enumerate(benchmarks, start=1)
    ]


def _benchmark(benchmark: Document, version: str | None) -> Measured:
    strategy = benchmark.get("config", "strategy", "type_")
    found: Times = {
        figure: _times(benchmark, key, unit_ms)
        for figure, (key, unit_ms) in _FIGURES.items()
        if isinstance(benchmark.get("metrics", key, "successful"), dict)
    }
    times, remarks = without_zeros(found, "GuideLLM")
    counts = [benchmark.count("metrics", "request_totals", name) for name in ("errored", "incomplete")]
    return Measured(
        tool="guidellm",
        version=version,
        where=f"{benchmark.where} ({strategy})" if strategy else benchmark.where,
        successful=benchmark.count("metrics", "request_totals", "successful"),
        failed=None if None in counts else sum(count for count in counts if count is not None),
        times=times,
        per_s=known_rates(
            {
                "requests": _rate(benchmark, "requests_per_second"),
                "input tokens": _rate(benchmark, "prompt_tokens_per_second"),
                "output tokens": _rate(benchmark, "output_tokens_per_second"),
                "tokens": _rate(benchmark, "tokens_per_second"),
                "good requests": _rate(benchmark, "request_goodput"),
            }
        ),
        hit_rate=None,
        remarks=remarks,
        silent=SILENT,
    )


def _times(benchmark: Document, key: str, unit_ms: float) -> dict[Statistic, float]:
    values = known({name: benchmark.number("metrics", key, "successful", *path) for name, path in _STATISTICS.items()})
    return {name: value * unit_ms for name, value in values.items()}


def _rate(benchmark: Document, key: str) -> float | None:
    return benchmark.number("metrics", key, "successful", "mean")
