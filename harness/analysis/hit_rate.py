"""Token hit rate from what the engine reported for each request."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


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


def of_requests(requests: pd.DataFrame) -> HitRate:
    """A ratio of sums, so that long prompts weigh as much as they cost; never the mean of ratios. Null is not 0."""
    cached, prompt = requests["cached_tokens"], requests["prompt_tokens"]
    both = cached.notna() & prompt.notna()
    ok = requests["status"] == "ok"
    reporting = int(both.sum())
    cached_tokens = int(cached[both].sum()) if reporting else None
    prompt_tokens = int(prompt[both].sum()) if reporting else None
    return HitRate(
        rate=cached_tokens / prompt_tokens if cached_tokens is not None and prompt_tokens else None,
        cached_tokens=cached_tokens,
        prompt_tokens=prompt_tokens,
        requests=len(requests),
        reporting=reporting,
        ok=int(ok.sum()),
        ok_reporting=int((ok & both).sum()),
        ok_cached_unknown=int((ok & cached.isna()).sum()),
        cached_unknown=int(cached.isna().sum()),
        cached_none=int((cached == 0).sum()),
        cached_some=int((cached > 0).sum()),
    )
