"""Whose a result file is, and what it says."""

from __future__ import annotations

from pathlib import Path

from harness.errors import InputError
from harness.exchange import aiperf, guidellm, inference_perf, vllm_bench
from harness.exchange.document import Document, read_documents
from harness.exchange.measured import Measured

READERS = (
    (vllm_bench.is_one, vllm_bench.read),
    (guidellm.is_one, guidellm.read),
    (aiperf.is_one, aiperf.read),
    (inference_perf.is_one, inference_perf.read),
)
"""Whether a document is a tool's, and what it says."""
FILES = (
    "vllm bench serve --save-result, GuideLLM's benchmarks.json, AIPerf's profile_export_aiperf.json, "
    "inference-perf's summary_lifecycle_metrics.json"
)


def read_results(file: Path) -> list[Measured]:
    """What each load in the file measured. Raises InputError if it is of none of the tools, or of another version."""
    return [measured for document in read_documents(file) for measured in _read(document)]


def _read(document: Document) -> list[Measured]:
    for is_one, read in READERS:
        if is_one(document):
            return read(document)
    raise InputError(f"{document.where} is no result file that kvswarm knows; it reads {FILES}.")
