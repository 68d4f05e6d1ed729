"""Requests and tokens a second, over the stretch of time that each load generator divides by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.analysis.definitions import Tool
from harness.analysis.health import Bools
from harness.analysis.run import LOAD, TargetRun
from harness.record.manifest import Phase

_MEASURED = "the successful requests of the measured phase / its length"
_ENDED = "the successful requests that ended in the measured phase, whenever they were sent / its length"
_ALL = "the successful requests / from the first request sent to the last answer, failed ones included"
_OK = "the successful requests / from the first of them sent to the last output of them"

WINDOWS: Mapping[Tool, str] = {
    "kvswarm": _MEASURED,
    "vllm bench": _ALL,
    "sglang bench": _ALL,
    "guidellm": _ENDED,
    "aiperf": _OK,
    "inference-perf": _ALL,
}
"""Tool -> what is counted / what it is divided by."""
_STAMPS = {_ALL: ("t_send", "t_end"), _OK: ("t_send", "t_last"), _ENDED: ("t_end",)}


@dataclass(frozen=True, slots=True)
class Throughput:
    """A second. None: not known, as a successful request does not tell its count."""

    requests: float
    input_tokens: float | None
    output_tokens: float | None

    @property
    def total_tokens(self) -> float | None:
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


def throughput(run: TargetRun, tool: Tool) -> Throughput | None:
    """As `tool` would divide. None: there was no such stretch of time."""
    phases = [phase for phase in run.phases if phase.phase == "measure"]
    window = WINDOWS[tool]
    requests, starts, ends = 0, list[int](), list[int]()
    tokens: dict[str, int | None] = {"prompt_tokens": 0, "output_tokens": 0}
    row = 0
    for piece in run.rows.pieces("phase", "status", *_STAMPS.get(window, ()), *tokens):
        measured = run.is_measured[row : row + len(piece)]
        row += len(piece)
        is_ok = (piece["status"] == "ok").to_numpy(dtype=bool)
        if window in (_ALL, _OK):
            start, end = _STAMPS[window]
            timed = measured & is_ok if window == _OK else measured
            starts += _known(piece[start][timed].min())
            ends += _known(piece[end][timed].max())
        ok = is_ok & (_ended(piece, phases) if window == _ENDED else measured)
        requests += int(ok.sum())
        tokens = {name: _plus(total, piece[name][ok]) for name, total in tokens.items()}
    length_ns = max(ends) - min(starts) if starts and ends else 0
    if window in (_MEASURED, _ENDED):
        length_ns = sum(phase.end_ns - phase.start_ns for phase in phases)
    if length_ns <= 0:
        return None
    length_s = length_ns / 1e9
    per_s = {name: None if total is None else total / length_s for name, total in tokens.items()}
    return Throughput(requests / length_s, per_s["prompt_tokens"], per_s["output_tokens"])


def _ended(rows: pd.DataFrame, phases: Sequence[Phase]) -> Bools:
    """The requests under load that ended in one of the phases."""
    within = np.zeros(len(rows), dtype=bool)
    for phase in phases:
        within |= rows["t_end"].between(phase.start_ns, phase.end_ns).to_numpy(dtype=bool, na_value=False)
    of_load: Bools = within & rows["phase"].isin(LOAD).to_numpy(dtype=bool)
    return of_load


def _known(stamp: Any) -> list[int]:
    return [] if pd.isna(stamp) else [int(stamp)]


def _plus(total: int | None, tokens: pd.Series) -> int | None:
    """None: not known, as one does not tell."""
    return None if total is None or tokens.isna().any() else total + int(tokens.sum())
