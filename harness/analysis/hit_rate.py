"""Token hit rate from what the engine reported for each request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.analysis.columns import stretches


@dataclass(frozen=True, slots=True)
class HitRate:
    """Sum of cached tokens / sum of prompt tokens, over the requests that report both."""

    rate: float | None
    """None: no request reports both."""
    cached_tokens: int | None
    prompt_tokens: int | None
    """The two sums; None: no request reports both."""
    requests: int
    reporting: int
    """Requests that report both numbers, whatever their status."""
    ok: int
    ok_reporting: int
    """The same two counts among requests with status ok."""
    ok_cached_unknown: int
    """Requests with status ok whose `cached_tokens` is null."""
    cached_unknown: int
    """Requests whose `cached_tokens` is null: not reported."""
    cached_none: int
    """Requests that report 0."""
    cached_some: int
    """Requests that report more than 0."""


def of_requests(requests: pd.DataFrame, which: npt.NDArray[np.bool_] | None = None) -> HitRate:
    """A ratio of sums, so that long prompts weigh as much as they cost; never the mean of ratios. Null is not 0.

    `which`, shape (requests,): those that count; None: all.
    """
    sums: Counter[str] = Counter()
    for part in stretches(len(requests)):
        some = requests.iloc[part]
        sums.update(_sums(some if which is None else some[which[part]]))
    reporting, cached_tokens, prompt_tokens = sums["reporting"], sums["cached_tokens"], sums["prompt_tokens"]
    return HitRate(
        rate=cached_tokens / prompt_tokens if prompt_tokens else None,
        cached_tokens=cached_tokens if reporting else None,
        prompt_tokens=prompt_tokens if reporting else None,
        requests=sums["requests"],
        reporting=reporting,
        ok=sums["ok"],
        ok_reporting=sums["ok_reporting"],
        ok_cached_unknown=sums["ok_cached_unknown"],
        cached_unknown=sums["cached_unknown"],
        cached_none=sums["cached_none"],
        cached_some=sums["cached_some"],
    )


def _sums(requests: pd.DataFrame) -> dict[str, int]:
    """The token counts are those of requests that report both."""
    known, both = requests["cached_tokens"].notna().to_numpy(), requests["prompt_tokens"].notna().to_numpy()
    both = known & both
    cached = requests["cached_tokens"].to_numpy(dtype=np.int64, na_value=0)
    prompt = requests["prompt_tokens"].to_numpy(dtype=np.int64, na_value=0)
    ok = (requests["status"] == "ok").to_numpy(dtype=bool)
    return {
        "requests": len(requests),
        "reporting": int(both.sum()),
        "cached_tokens": int(cached[both].sum()),
        "prompt_tokens": int(prompt[both].sum()),
        "ok": int(ok.sum()),
        "ok_reporting": int((ok & both).sum()),
        "ok_cached_unknown": int((ok & ~known).sum()),
        "cached_unknown": int((~known).sum()),
        "cached_none": int((known & (cached == 0)).sum()),
        "cached_some": int((cached > 0).sum()),
    }
