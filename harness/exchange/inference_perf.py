"""inference-perf's lifecycle report (summary_lifecycle_metrics.json, stage_N_lifecycle_metrics.json).

Read from inference_perf/reportgen/base.py of inference-perf 0.7.0. The file does not name its version; those of 0.3 to
0.6 have the same keys for times and throughput.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis.definitions import Figure
from harness.analysis.numbers import count
from harness.errors import InputError
from harness.exchange.document import Document
from harness.exchange.measured import NAMES, Measured, Statistic, known, known_rates

_KEYS = {"load_summary", "successes", "failures"}
_FIGURES: dict[Figure, str] = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "ntpot": "normalized_time_per_output_token",
    "itl": "inter_token_latency",
    "e2e": "request_latency",
}
SILENT = (
    "which version wrote it, and whether n is its own tokeniser's count or the server's (use_server_output_tokens)",
    "in its cached tokens, a request that does not report any counts as 0",
    "TTFT, TPOT and ITL of answers with one token; reasoning is no output to it",
)


def is_one(document: Document) -> bool:
    return document.content.keys() >= _KEYS


def read(document: Document) -> list[Measured]:
    """Raises InputError for its report of the server's metrics, or if a number is none."""
    if document.get("successes", "latency") is None:
        raise InputError(
            f"{document.where} is inference-perf's report of the server's metrics, or of no successful request; give "
            "summary_lifecycle_metrics.json or stage_N_lifecycle_metrics.json of a run with answers."
        )
    times = {figure: _times(document, key) for figure, key in _FIGURES.items()}
    cached, prompt = (document.number("successes", "prompt_tokens", name) for name in ("cached", "total"))
    return [
        Measured(
            tool="inference-perf",
            version=None,
            where=document.where,
            successful=document.count("successes", "count"),
            failed=document.count("failures", "count"),
            times={figure: values for figure, values in times.items() if values},
            per_s=known_rates(
                {
                    "requests": document.number("successes", "throughput", "requests_per_sec"),
                    "input tokens": document.number("successes", "throughput", "input_tokens_per_sec"),
                    "output tokens": document.number("successes", "throughput", "output_tokens_per_sec"),
                    "tokens": document.number("successes", "throughput", "total_tokens_per_sec"),
                    "good requests": document.number("successes", "goodput_metrics", "request_goodput"),
                }
            ),
            hit_rate=cached / prompt if cached is not None and prompt else None,
            remarks=tuple(_remarks(document)),
            silent=SILENT,
        )
    ]


def _remarks(document: Document) -> Iterator[str]:
    retried, attempts = (document.count("retries", name) for name in ("requests_retried", "attempts"))
    if retried:
        yield (
            f"{count(retried)} of its requests were sent again ({count(attempts)} times in all): their TTFT, NTPOT and "
            "E2E have in them what failed before, and the waits in between. kvswarm sends nothing twice."
        )
    if own := document.count("successes", "client_fallback_requests", "output"):
        yield f"for {count(own)} of its requests the server gave no count of output tokens: n is its own tokeniser's."


def _times(document: Document, key: str) -> dict[Statistic, float]:
    """Its seconds in ms; empty: there are none."""
    values = known({name: _first(document, key, names) for name, names in NAMES.items()})
    return {name: value * 1e3 for name, value in values.items()}


def _first(document: Document, key: str, names: Sequence[str]) -> float | None:
    values = (document.number("successes", "latency", key, name) for name in names)
    return next((value for value in values if value is not None), None)
