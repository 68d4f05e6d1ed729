"""What the page's tab shows of a run: figures so far, which add up over workers. For the screen; results are the rows.

Times are counted in buckets, each 1 % wider than the one before. A percentile is shown as the geometric middle of the
bucket that holds the value of its rank (the nearest one, ceil(share * n)), so it is off by at most 0.5 %
(sqrt(1.01) - 1). Times below 1 µs count as 1 µs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

GROWTH = 1.01
SHORTEST_MS = 1e-3
UNKNOWN = "-"

COLUMNS = {
    "sessions": "Sessions",
    "requests": "Requests",
    "failed": "Failed",
    "ttft_p50": "TTFT p50 (ms)",
    "ttft_p99": "TTFT p99 (ms)",
    "tpot_p50": "TPOT p50 (ms)",
    "hit_rate": "Token hit rate",
    "reported_by": "Reported by",
}
"""Key in the table's rows -> title."""

Buckets = dict[int, int]
"""Number of times in each bucket; bucket i holds those from GROWTH ** i to GROWTH ** (i + 1) ms."""


@dataclass(slots=True)
class _Figures:
    """Of the requests to one target, of one kind and warmth."""

    requests: int = 0
    failed: int = 0
    """Neither ok nor cancelled, as in the report."""
    reporting: int = 0
    """Requests that report both cached and prompt tokens; the next two are sums over them."""
    cached_tokens: int = 0
    prompt_tokens: int = 0
    ttft: Buckets = field(default_factory=dict)
    """Of successes; so is the next."""
    tpot: Buckets = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        self.requests += 1
        self.failed += row["status"] not in ("ok", "cancelled")
        if row["cached_tokens"] is not None and row["prompt_tokens"] is not None:
            self.reporting += 1
            self.cached_tokens += row["cached_tokens"]
            self.prompt_tokens += row["prompt_tokens"]
        if row["status"] == "ok":
            for buckets, value_ms in ((self.ttft, row["ttft_ms"]), (self.tpot, row["tpot_ms"])):
                if value_ms is not None:
                    bucket = math.floor(math.log(max(value_ms, SHORTEST_MS), GROWTH))
                    buckets[bucket] = buckets.get(bucket, 0) + 1

    def merge(self, other: _Figures) -> None:
        self.requests += other.requests
        self.failed += other.failed
        self.reporting += other.reporting
        self.cached_tokens += other.cached_tokens
        self.prompt_tokens += other.prompt_tokens
        for own, others in ((self.ttft, other.ttft), (self.tpot, other.tpot)):
            for bucket, count in others.items():
                own[bucket] = own.get(bucket, 0) + count

    def cells(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "failed": self.failed,
            "ttft_p50": _milliseconds(quantile(self.ttft, 0.50)),
            "ttft_p99": _milliseconds(quantile(self.ttft, 0.99)),
            "tpot_p50": _milliseconds(quantile(self.tpot, 0.50)),
            "hit_rate": _percent(self.cached_tokens, self.prompt_tokens),
            "reported_by": f"{self.reporting} of {self.requests}",
        }


class LiveFigures:
    """Of one run, or of what one worker saw since its last report."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str, str], _Figures] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a finished request, given as its row in the request table."""
        self._group(row["target"], row["kind"], row["warmth"]).add(row)

    def take(self) -> list[dict[str, Any]]:
        """All figures as plain values for another process's `merge`; they begin anew here."""
        groups, self._groups = self._groups, {}
        return [
            {"target": target, "kind": kind, "warmth": warmth, **asdict(figures)}
            for (target, kind, warmth), figures in groups.items()
        ]

    def merge(self, taken: Iterable[Mapping[str, Any]]) -> None:
        """Add what `take` gave."""
        for group in taken:
            figures = dict(group)
            self._group(figures.pop("target"), figures.pop("kind"), figures.pop("warmth")).merge(_Figures(**figures))

    def rows(self) -> list[dict[str, Any]]:
        """The table's rows, one for each target (if several), kind and warmth; "-" where a figure is not known."""
        several = len({target for target, _, _ in self._groups}) > 1
        return [
            {"sessions": " ".join(key if several else key[1:]), **figures.cells()}
            for key, figures in sorted(self._groups.items())
        ]

    def line(self, targets: Collection[str]) -> str:
        """The figures of all requests to these targets in one line; "-" where one is not known."""
        total, of_warmth = _Figures(), {"cold": _Figures(), "warm": _Figures()}
        for (target, _, warmth), figures in self._groups.items():
            if target in targets:
                total.merge(figures)
                of_warmth[warmth].merge(figures)
        ttft = {warmth: _milliseconds(quantile(figures.ttft, 0.50)) for warmth, figures in of_warmth.items()}
        return (
            f"{total.requests} requests  {total.failed} failed  "
            f"TTFT p50 cold {ttft['cold']} warm {ttft['warm']} ms  "
            f"hit rate {_percent(total.cached_tokens, total.prompt_tokens)}"
        )

    def _group(self, target: str, kind: str, warmth: str) -> _Figures:
        return self._groups.setdefault((target, kind, warmth), _Figures())


def quantile(buckets: Buckets, share: float) -> float | None:
    """In ms; None: there are no times."""
    left = math.ceil(share * sum(buckets.values()))
    for bucket in sorted(buckets):
        left -= buckets[bucket]
        if left <= 0:
            return float(GROWTH ** (bucket + 0.5))
    return None


def run_lines(run_id: str, state: str, directory: str, report: str, problems: Iterable[str]) -> list[dict[str, Any]]:
    """Rows that say what became of the run; each has its first cell only."""
    lines = [f"Run {run_id}: {state}", f"Directory: {directory}", f"Tables: {report}"]
    return [{"sessions": line} for line in [*lines, *(f"Problem: {problem}" for problem in problems)]]


def _milliseconds(value_ms: float | None) -> float | str:
    """A number, so that the page can sort by it: three digits below 100 ms, whole ones above."""
    if value_ms is None:
        return UNKNOWN
    return round(value_ms, 2 if value_ms < 10 else 1 if value_ms < 100 else None)


def _percent(cached_tokens: int, prompt_tokens: int) -> str:
    """Rounded down, so that 100 % means all; what is not none never shows as 0 %."""
    if prompt_tokens == 0:
        return UNKNOWN
    tenths = 1000 * cached_tokens // prompt_tokens
    return "<0.1 %" if cached_tokens and not tenths else f"{tenths / 10} %"
