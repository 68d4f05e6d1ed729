"""Requests with prompts, and logs of them without a run's directory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from harness.analysis.request_log import RequestLog, read_log
from harness.analysis.rows import Rows
from harness.analysis.run import TargetRun
from harness.record.schema import REQUESTS, SERVER_METRICS
from tests.analysis.rows import Row, request, target

SECOND = 10**9
START = 1_700_000_000 * SECOND
"""2023-11-14, 22:13:20 UTC."""


def asked(
    path: Iterable[tuple[int, int]],
    at_s: float,
    first_s: float | None = None,
    cached: int | None = None,
    **changes: Any,
) -> Row:
    """A measured request for `path`, sent `at_s` seconds after START; its first token came at `first_s`, and a token
    of answer a second later."""
    segments = list(path)
    total = sum(tokens for _, tokens in segments)
    row: Row = {"path": [identity for identity, _ in segments], "path_tokens": [tokens for _, tokens in segments]}
    row |= {"planned_prompt_tokens": total, "prompt_tokens": total, "cached_tokens": cached, "t_send": _ns(at_s)}
    if first_s is not None:
        row |= {"t_first": _ns(first_s), "t_last": _ns(first_s + 1), "t_end": _ns(first_s + 1), "output_tokens": 1}
    return request(**row | changes)


def _ns(seconds: float) -> int:
    return START + round(seconds * SECOND)


def run_of(rows: Iterable[Row], **of_target: Any) -> TargetRun:
    """A target that was sent these, and has no metrics."""
    table = pa.Table.from_pylist(list(rows), schema=REQUESTS)
    samples = Rows(ds.dataset(SERVER_METRICS.empty_table()))
    return TargetRun(Rows(ds.dataset(table)), samples, target(**of_target), (), 0, {})


def log_of(rows: Iterable[Row]) -> RequestLog:
    """The texts of its content ids begin differently: there are no words that two could share."""
    return read_log(run_of(rows))
