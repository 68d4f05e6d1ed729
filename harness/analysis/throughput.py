"""Requests and tokens a second, over the stretch of time that each load generator divides by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from harness.analysis.definitions import Tool
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
    rows = run.measured
    ok = rows[rows["status"] == "ok"]
    phases = [phase for phase in run.phases if phase.phase == "measure"]
    window = WINDOWS[tool]
    if window == _ALL:
        length_ns = _length_ns(rows["t_send"], rows["t_end"])
    elif window == _OK:
        length_ns = _length_ns(ok["t_send"], ok["t_last"])
    else:
        length_ns = sum(phase.end_ns - phase.start_ns for phase in phases)
    if window == _ENDED:
        ok = _ended(run.requests, phases)
    if length_ns <= 0:
        return None
    length_s = length_ns / 1e9
    return Throughput(
        requests=len(ok) / length_s,
        input_tokens=_sum(ok["prompt_tokens"], length_s),
        output_tokens=_sum(ok["output_tokens"], length_s),
    )


def _ended(requests: pd.DataFrame, phases: Sequence[Phase]) -> pd.DataFrame:
    """The successful requests under load that ended in one of the phases."""
    ok = requests[requests["phase"].isin(LOAD) & (requests["status"] == "ok")]
    within = pd.Series(False, index=ok.index)
    for phase in phases:
        within |= ok["t_end"].between(phase.start_ns, phase.end_ns).fillna(False).astype(bool)
    return ok[within]


def _length_ns(starts: pd.Series, ends: pd.Series) -> int:
    first, last = starts.min(), ends.max()
    return 0 if pd.isna(first) or pd.isna(last) else int(last) - int(first)


def _sum(tokens: pd.Series, length_s: float) -> float | None:
    return None if tokens.isna().any() else int(tokens.sum()) / length_s
