"""What a change of the prompts costs: two runs of the same sessions, request against request."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from harness.analysis.run import TargetRun

_REQUEST = ["session", "turn"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of the requests that both runs measured, ok in both: the same turn of the same session."""

    requests: int
    reporting: int
    """Those of which both runs report cached and prompt tokens; the next two are over these."""
    rate_before: float | None
    """Token hit rate: a ratio of sums. None: no request reports."""
    rate_after: float | None
    warm_ttft_before_ms: float | None
    """Median over the warm ones; None: there are none."""
    warm_ttft_after_ms: float | None

    def sentence(self, change: str) -> str:
        """In words; `change` is what was done to the prompts, as a clause's subject."""
        if self.rate_before is None or self.rate_after is None:
            tokens = "what it costs in tokens is not known, as the answers report no cached tokens"
        else:
            lost = 1000 * (self.rate_before - self.rate_after)
            more = f"{abs(lost):,.0f} {'more' if lost >= 0 else 'fewer'}"
            tokens = (
                f"the token hit rate goes from {self.rate_before:.1%} to {self.rate_after:.1%}, so of 1,000 prompt "
                f"tokens {more} are computed"
            )
        if self.warm_ttft_before_ms is None or self.warm_ttft_after_ms is None:
            wait = "no warm turn is in both, so TTFT is not compared"
        else:
            wait = (
                f"the median TTFT of warm turns goes from {self.warm_ttft_before_ms:,.0f} to "
                f"{self.warm_ttft_after_ms:,.0f} ms"
            )
        return f"{change}: {tokens}; {wait} (over the {self.requests} requests that both runs sent)."


def cost(before: TargetRun, after: TargetRun) -> Cost:
    """Runs are cut off by time, so one may have got further: only what both sent is compared."""
    both = _ok(before).merge(_ok(after), on=_REQUEST, suffixes=("_before", "_after"))
    counts = [f"{name}_{when}" for when in ("before", "after") for name in ("cached_tokens", "prompt_tokens")]
    reporting = both.dropna(subset=counts)
    warm = both[both["turn"] > 0]
    return Cost(
        requests=len(both),
        reporting=len(reporting),
        rate_before=_rate(reporting, "before"),
        rate_after=_rate(reporting, "after"),
        warm_ttft_before_ms=_median(warm["ttft_ms_before"]),
        warm_ttft_after_ms=_median(warm["ttft_ms_after"]),
    )


def _ok(run: TargetRun) -> pd.DataFrame:
    rows = run.counted
    return rows.loc[rows["status"] == "ok", [*_REQUEST, "cached_tokens", "prompt_tokens", "ttft_ms"]]


def _rate(rows: pd.DataFrame, when: str) -> float | None:
    prompt = int(rows[f"prompt_tokens_{when}"].sum())
    return int(rows[f"cached_tokens_{when}"].sum()) / prompt if prompt else None


def _median(times: pd.Series) -> float | None:
    return float(times.median()) if times.notna().any() else None
