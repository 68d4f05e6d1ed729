"""AIPerf's summary (profile_export_aiperf.json), schema 1.x.

Read from common/models/export_models.py and metrics/types/ of AIPerf 0.13.0, whose schema is 1.4.
"""

from __future__ import annotations

from harness.analysis.definitions import Figure
from harness.errors import InputError
from harness.exchange.document import Document
from harness.exchange.measured import Measured, Rate, Statistic, known, known_rates

SCHEMA = "1"
"""Of its schema versions, the number before the point."""
_FIGURES: dict[Figure, str] = {
    "ttft": "time_to_first_token",
    "itl": "inter_token_latency",
    "icl": "inter_chunk_latency",
    "e2e": "request_latency",
}
_STATISTICS: dict[Statistic, str] = {"mean": "avg", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_RATES: dict[Rate, str] = {
    "requests": "request_throughput",
    "input tokens": "input_token_throughput",
    "output tokens": "output_token_throughput",
    "tokens": "total_token_throughput",
    "good requests": "goodput",
}
_UNITS_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "sec": 1e3}
SILENT = (
    "TPOT: there is none; its ITL is what others call TPOT, one value for each request",
    "times are of the successful requests; where some failed, adj_ figures beside them count those as infinite",
)


def is_one(document: Document) -> bool:
    return "aiperf_version" in document.content and "schema_version" in document.content


def read(document: Document) -> list[Measured]:
    """Raises InputError for another of its files, a schema that is not 1.x, or if a number or unit is none."""
    schema, version = document.get("schema_version"), document.get("aiperf_version")
    if str(schema).partition(".")[0] != SCHEMA:
        raise InputError(
            f"{document.where} is of AIPerf {version} in schema {schema}; kvswarm reads schema {SCHEMA}.x, which "
            "AIPerf 0.13 writes."
        )
    if document.get("request_count") is None:
        raise InputError(
            f"{document.where} is of AIPerf, but no summary of a run with answers; give profile_export_aiperf.json."
        )
    cached_percent = document.number("overall_usage_prompt_cache_read_pct", "avg")
    return [
        Measured(
            tool="aiperf",
            version=version,
            where=document.where,
            successful=document.count("request_count", "avg"),
            failed=document.count("error_request_count", "avg"),
            times={figure: _times(document, tag) for figure, tag in _FIGURES.items() if document.get(tag)},
            per_s=known_rates({rate: document.number(tag, "avg") for rate, tag in _RATES.items()}),
            hit_rate=None if cached_percent is None else cached_percent / 100,
            remarks=tuple(_remarks(document)),
            silent=SILENT,
        )
    ]


def _times(document: Document, tag: str) -> dict[Statistic, float]:
    unit = document.get(tag, "unit")
    if unit not in _UNITS_MS:
        raise InputError(
            f"{document.where}: {tag} has the unit {unit!r}; kvswarm knows {', '.join(_UNITS_MS)}: give the file as it "
            "was written."
        )
    values = known({name: document.number(tag, key) for name, key in _STATISTICS.items()})
    return {name: value * _UNITS_MS[unit] for name, value in values.items()}


def _remarks(document: Document) -> list[str]:
    remarks = []
    if document.get("was_cancelled"):
        remarks.append("The run was cancelled before its end.")
    if document.get("is_complete") is False:
        remarks.append(f"The run is not complete: {document.get('incomplete_reason') or 'it does not say why'}.")
    return remarks
