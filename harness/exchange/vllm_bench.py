"""The result file of `vllm bench serve --save-result` (`--append-result`: one object a line).

Read from vllm/benchmarks/serve.py of vLLM 0.32.0. The file does not name its version.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis.definitions import Figure
from harness.errors import InputError
from harness.exchange.document import Document
from harness.exchange.measured import NAMES, Measured, known, known_rates, without_zeros

_KEYS = {"endpoint_type", "duration", "completed", "request_throughput", "total_token_throughput"}
_FIGURES: dict[Figure, str] = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
SILENT = (
    "cached tokens are not in the file",
    "which version wrote it: to 0.32 any chunk with a choice is the first token, one with nothing but a role too",
    "percentiles other than --metric-percentiles (p99 by default), and E2E unless --percentile-metrics has e2el",
    "how late requests were sent: times count from when they were sent",
)


def is_one(document: Document) -> bool:
    return document.content.keys() >= _KEYS


def read(document: Document) -> list[Measured]:
    """Raises InputError if the model generated nothing (pooling), or if a number is none."""
    if "output_throughput" not in document.content:
        raise InputError(
            f"{document.where} is of vllm bench and a pooling model, which generates nothing: there is no TTFT in it; "
            "give the result of a model that generates."
        )
    times, remarks = without_zeros(
        {
            figure: known({statistic: _first(document, names, name) for statistic, names in NAMES.items()})
            for figure, name in _FIGURES.items()
        },
        "vllm bench",
    )
    return [
        Measured(
            tool="vllm bench",
            version=None,
            where=document.where,
            successful=document.count("completed"),
            failed=document.count("failed"),
            times=times,
            per_s=known_rates(
                {
                    "requests": document.number("request_throughput"),
                    "output tokens": document.number("output_throughput"),
                    "tokens": document.number("total_token_throughput"),
                    "good requests": document.number("request_goodput"),
                }
            ),
            hit_rate=None,
            remarks=remarks,
            silent=SILENT,
        )
    ]


def _first(document: Document, names: Sequence[str], figure: str) -> float | None:
    values = (document.number(f"{name}_{figure}_ms") for name in names)
    return next((value for value in values if value is not None), None)
