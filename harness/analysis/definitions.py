"""TTFT, TPOT, ITL and their kin as other load generators define them, worked out from our rows.

docs/metrics.md has the sources: tool, version and file of each. A sample holds the successful requests that are given;
one that lacks a stamp or a count, or during which the clock was set, has no value. `start` is `t_send`, or before the
connection was opened (`t_send` - `connect_ms`) where the tool's own clock starts there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from harness.analysis.sample import Floats, Sample

Tool = Literal["kvswarm", "vllm bench", "sglang bench", "guidellm", "aiperf", "inference-perf"]
Figure = Literal["ttft", "tpot", "ntpot", "itl", "icl", "e2e"]
"""ntpot: normalised TPOT, the whole time over all tokens; icl: inter-chunk latency."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What a tool means by a figure."""

    formula: str
    """In the columns of `requests`; n is `output_tokens`."""
    column: str | None
    """Our column that comes nearest to it; None: there is none."""
    of: Callable[[pd.DataFrame], Sample]
    """Takes rows of `requests` with status ok."""
    columns: tuple[str, ...]
    """Of `requests`, that `of` looks at."""


def _ms(rows: pd.DataFrame, end: str, start: str) -> Floats:
    """Between two stamps; NaN where one is missing or the clock was set in between."""
    times = ((rows[end] - rows[start]) / 1e6).to_numpy(dtype=np.float64, na_value=np.nan)
    times[rows["clock_stepped"].fillna(False).to_numpy(dtype=bool)] = np.nan
    return times


def _connecting(rows: pd.DataFrame) -> Floats:
    """How long opening the connection took; 0 where an open one was used."""
    times: Floats = rows["connect_ms"].fillna(0.0).to_numpy(dtype=np.float64)
    return times


def _tokens(rows: pd.DataFrame) -> Floats:
    return rows["output_tokens"].to_numpy(dtype=np.float64, na_value=np.nan)


def _known(values: Floats, weights: Floats | None = None) -> Sample:
    known = np.isfinite(values)
    return Sample(values[known], None if weights is None else weights[known])


def _over(times: Floats, divisor: Floats) -> Floats:
    """NaN where nothing is left to divide by."""
    quotient: Floats = np.divide(times, divisor, out=np.full(len(times), np.nan), where=divisor > 0)
    return quotient


def _column(name: str, *, by_rank: bool = True) -> Callable[[pd.DataFrame], Sample]:
    def of(rows: pd.DataFrame) -> Sample:
        values = rows[name].to_numpy(dtype=np.float64, na_value=np.nan)
        return _known(values, None if by_rank else np.ones(len(values)))

    return of


def _from_connecting(end: str) -> Callable[[pd.DataFrame], Sample]:
    return lambda rows: _known(_connecting(rows) + _ms(rows, end, "t_send"))


def _per_later_token(end: str) -> Callable[[pd.DataFrame], Sample]:
    return lambda rows: _known(_over(_ms(rows, end, "t_first"), _tokens(rows) - 1))


def _gaps(rows: pd.DataFrame) -> Sample:
    return Sample(pa.array(rows["itl_ms"], pa.list_(pa.float32())).flatten().to_numpy())


def _weighted_by_later_tokens(rows: pd.DataFrame) -> Sample:
    later = _tokens(rows) - 1
    return _known(_over(_ms(rows, "t_last", "t_first"), later), later)


def _weighted_by_tokens(rows: pd.DataFrame) -> Sample:
    tokens = _tokens(rows)
    return _known(_over(_ms(rows, "t_last", "t_send"), tokens), tokens)


def _ttft_of_longer(rows: pd.DataFrame) -> Sample:
    return _from_connecting("t_first")(rows[(rows["output_tokens"] > 1).fillna(False)])


def _whole_over_tokens(rows: pd.DataFrame) -> Sample:
    tokens, times = _tokens(rows), _connecting(rows) + _ms(rows, "t_end", "t_send")
    return _known(np.where(tokens == 0, 0.0 * times, _over(times, tokens)))


def _token_gaps(rows: pd.DataFrame) -> Sample:
    timed = rows[rows["itl_ms"].notna()]
    together = np.nan_to_num(_tokens(timed)) - timed["chunks"].to_numpy(dtype=np.float64)
    return Sample(np.concatenate([_gaps(timed).values_ms, np.zeros(int(together[together > 0].sum()), np.float32)]))


_SINCE = ("clock_stepped", "connect_ms", "t_send")
_LATER = ("clock_stepped", "t_first", "output_tokens")
_TTFT = "t_first - start, start before the connection is opened"
_TPOT = "(t_last - t_first) / (n - 1), where n > 1"
_ITL = "all gaps between output chunks (itl_ms), of all requests together"
_E2E = "t_last - start, start before the connection is opened"
_E2E_TO_END = "t_end - start, start before the connection is opened"

DEFINITIONS: Mapping[Tool, Mapping[Figure, Definition]] = {
    "kvswarm": {
        "ttft": Definition("t_first - t_send", "ttft_ms", _column("ttft_ms"), ("ttft_ms",)),
        "tpot": Definition(
            "(t_last - t_first) / (n - first_tokens), where that is above 0",
            "tpot_ms",
            _column("tpot_ms"),
            ("tpot_ms",),
        ),
        "itl": Definition(_ITL, "itl_ms", _gaps, ("itl_ms",)),
        "e2e": Definition("t_end - t_send", "e2e_ms", _column("e2e_ms"), ("e2e_ms",)),
    },
    "vllm bench": {
        "ttft": Definition(_TTFT, "ttft_ms", _from_connecting("t_first"), (*_SINCE, "t_first")),
        "tpot": Definition(_TPOT, "tpot_ms", _per_later_token("t_last"), (*_LATER, "t_last")),
        "itl": Definition(_ITL, "itl_ms", _gaps, ("itl_ms",)),
        "e2e": Definition(_E2E, "e2e_ms", _from_connecting("t_last"), (*_SINCE, "t_last")),
    },
    "sglang bench": {
        "ttft": Definition(_TTFT, "ttft_ms", _from_connecting("t_first"), (*_SINCE, "t_first")),
        "tpot": Definition(
            "(t_end - t_first) / (n - 1), where n > 1", "tpot_ms", _per_later_token("t_end"), (*_LATER, "t_end")
        ),
        "itl": Definition(_ITL, "itl_ms", _gaps, ("itl_ms",)),
        "e2e": Definition(_E2E_TO_END, "e2e_ms", _from_connecting("t_end"), (*_SINCE, "t_end")),
    },
    "guidellm": {
        "ttft": Definition("t_first - t_send", "ttft_ms", _column("ttft_ms", by_rank=False), ("ttft_ms",)),
        "tpot": Definition(
            "(t_last - t_send) / n: TTFT included; a request weighs as many as its tokens",
            None,
            _weighted_by_tokens,
            ("clock_stepped", "t_send", "t_last", "output_tokens"),
        ),
        "itl": Definition(
            f"{_TPOT}; a request weighs as many as its tokens after the first",
            "tpot_ms",
            _weighted_by_later_tokens,
            (*_LATER, "t_last"),
        ),
        "e2e": Definition("t_end - t_send", "e2e_ms", _column("e2e_ms", by_rank=False), ("e2e_ms",)),
    },
    "aiperf": {
        "ttft": Definition(_TTFT, "ttft_ms", _from_connecting("t_first"), (*_SINCE, "t_first")),
        "itl": Definition(
            f"{_TPOT}; with --per-chunk-usage n - first_tokens, as our TPOT",
            "tpot_ms",
            _per_later_token("t_last"),
            (*_LATER, "t_last"),
        ),
        "icl": Definition(_ITL, "itl_ms", _gaps, ("itl_ms",)),
        "e2e": Definition(_E2E, "e2e_ms", _from_connecting("t_last"), (*_SINCE, "t_last")),
    },
    "inference-perf": {
        "ttft": Definition(f"{_TTFT}, where n > 1", "ttft_ms", _ttft_of_longer, (*_SINCE, "t_first", "output_tokens")),
        "tpot": Definition(_TPOT, "tpot_ms", _per_later_token("t_last"), (*_LATER, "t_last")),
        "ntpot": Definition(
            "(t_end - start) / n: TTFT included; 0 where n is 0",
            None,
            _whole_over_tokens,
            (*_SINCE, "t_end", "output_tokens"),
        ),
        "itl": Definition(
            f"{_ITL}, and 0 for each token that came in one chunk with another",
            "itl_ms",
            _token_gaps,
            ("itl_ms", "output_tokens", "chunks"),
        ),
        "e2e": Definition(_E2E_TO_END, "e2e_ms", _from_connecting("t_end"), (*_SINCE, "t_end")),
    },
}
"""Tool -> figure, under the tool's own name for it -> definition."""
