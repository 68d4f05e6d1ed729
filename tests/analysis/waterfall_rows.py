"""Small logs of requests whose waterfall can be worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from harness.analysis.rows import Rows
from harness.analysis.run import TargetRun
from harness.record.schema import REQUESTS, SERVER_METRICS
from tests.analysis.rows import Row, request, target

VLLM = {"engine": "vllm", "model": "m", "granularity_tokens": 16}
SGLANG = {"engine": "sglang", "model": "m", "granularity_tokens": 1, "capacity_tokens": 10_000}
LLAMA_CPP = {"engine": "llama-cpp", "model": "m", "granularity_tokens": 1, "slots": 2, "context_tokens": 4096}
MLX_LM = {"engine": "mlx-lm", "model": "m", "granularity_tokens": 1}


def sent(
    path: Sequence[tuple[int, int]], t_send: int, t_first: int | None = None, t_end: int | None = None, **changes: Any
) -> Row:
    """A measured request with an answer of 2 tokens; alone on the engine if no times but `t_send` are given."""
    lengths = [length for _, length in path]
    first = t_send + 1 if t_first is None else t_first
    row = request(
        request_id=f"q{t_send}",
        path=[identity for identity, _ in path],
        path_tokens=lengths,
        planned_prompt_tokens=sum(lengths),
        prompt_tokens=sum(lengths),
        output_tokens=2,
        t_send=t_send,
        t_first=first,
        t_last=first,
        t_end=first + 1 if t_end is None else t_end,
    )
    return row | changes


def target_run(rows: Iterable[Row], identity: dict[str, Any], **changes: Any) -> TargetRun:
    """What a run recorded of its first target, whose engine tells `identity`."""
    table = pa.Table.from_pylist(list(rows), schema=REQUESTS)
    samples = Rows(ds.dataset(SERVER_METRICS.empty_table()))
    of_target = target(identity=identity, **changes)
    return TargetRun(Rows(ds.dataset(table)), samples, of_target, (), number=0, scenario={})
