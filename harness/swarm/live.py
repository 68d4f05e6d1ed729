"""What the page shows of a run's requests: figures that add up over workers. For the screen; results are the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from harness.swarm import buckets
from harness.swarm.buckets import Buckets, quantile

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

HIT, MISS, UNREPORTED = "hit", "miss", "unreported"


def outcome(cached_tokens: int | None, prompt_tokens: int | None) -> str:
    """hit: at least half of the prompt came from the cache; miss: less; unreported: who knows."""
    if cached_tokens is None or prompt_tokens is None:
        return UNREPORTED
    return HIT if 2 * cached_tokens >= prompt_tokens else MISS


@dataclass(slots=True)
class Figures:
    """Of the requests to one target, of one kind, warmth and outcome."""

    requests: int = 0
    failed: int = 0
    """Neither ok nor cancelled, as in the report; the next are among them."""
    refused: int = 0
    reporting: int = 0
    """Requests that report both cached and prompt tokens; the next two are sums over them."""
    cached_tokens: int = 0
    prompt_tokens: int = 0
    ttft: Buckets = field(default_factory=dict)
    """Of successes; so is the next."""
    tpot: Buckets = field(default_factory=dict)
    late: Buckets = field(default_factory=dict)
    """How late the harness sent what it sent."""

    def add(self, row: Mapping[str, Any]) -> None:
        status = row["status"]
        self.requests += 1
        self.failed += status not in ("ok", "cancelled")
        self.refused += status == "refused"
        if row["cached_tokens"] is not None and row["prompt_tokens"] is not None:
            self.reporting += 1
            self.cached_tokens += row["cached_tokens"]
            self.prompt_tokens += row["prompt_tokens"]
        if row["late_ms"] is not None:
            buckets.count(self.late, row["late_ms"])
        if status == "ok":
            if row["ttft_ms"] is not None:
                buckets.count(self.ttft, row["ttft_ms"])
            if row["tpot_ms"] is not None:
                buckets.count(self.tpot, row["tpot_ms"])

    def merge(self, other: Figures) -> None:
        self.requests += other.requests
        self.failed += other.failed
        self.refused += other.refused
        self.reporting += other.reporting
        self.cached_tokens += other.cached_tokens
        self.prompt_tokens += other.prompt_tokens
        buckets.add(self.ttft, other.ttft)
        buckets.add(self.tpot, other.tpot)
        buckets.add(self.late, other.late)

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
    """Of one run, of a stretch of it, or of what one worker saw since its last report."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str, str, str], Figures] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a finished request, given as its row in the request table."""
        how = outcome(row["cached_tokens"], row["prompt_tokens"])
        self._group(row["target"], row["kind"], row["warmth"], how).add(row)

    def take(self) -> list[dict[str, Any]]:
        """All figures as plain values for another process's `merge`; they begin anew here."""
        groups, self._groups = self._groups, {}
        return [
            {"target": target, "kind": kind, "warmth": warmth, "outcome": how, **asdict(figures)}
            for (target, kind, warmth, how), figures in groups.items()
        ]

    def merge(self, taken: Iterable[Mapping[str, Any]]) -> None:
        """Add what `take` gave."""
        for group in taken:
            figures = dict(group)
            key = [figures.pop(name) for name in ("target", "kind", "warmth", "outcome")]
            self._group(*key).merge(Figures(**figures))

    def of_target(self, target: str) -> dict[str, Figures]:
        """Of its requests, by outcome; those that there are none of have figures, too."""
        found = {how: Figures() for how in (HIT, MISS, UNREPORTED)}
        for (name, _, _, how), figures in self._groups.items():
            if name == target:
                found[how].merge(figures)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """The table's rows, one for each target (if several), kind and warmth; "-" where a figure is not known."""
        several = len({target for target, *_ in self._groups}) > 1
        by_name: dict[tuple[str, ...], Figures] = {}
        for (target, kind, warmth, _), figures in self._groups.items():
            by_name.setdefault((target, kind, warmth), Figures()).merge(figures)
        return [
            {"sessions": " ".join(key if several else key[1:]), **figures.cells()}
            for key, figures in sorted(by_name.items())
        ]

    def line(self, targets: Collection[str]) -> str:
        """The figures of all requests to these targets in one line; "-" where one is not known."""
        total, of_warmth = Figures(), {"cold": Figures(), "warm": Figures()}
        for (target, _, warmth, _), figures in self._groups.items():
            if target in targets:
                total.merge(figures)
                of_warmth[warmth].merge(figures)
        ttft = {warmth: _milliseconds(quantile(figures.ttft, 0.50)) for warmth, figures in of_warmth.items()}
        return (
            f"{total.requests} requests  {total.failed} failed  "
            f"TTFT p50 cold {ttft['cold']} warm {ttft['warm']} ms  "
            f"hit rate {_percent(total.cached_tokens, total.prompt_tokens)}"
        )

    def _group(self, target: str, kind: str, warmth: str, how: str) -> Figures:
        return self._groups.setdefault((target, kind, warmth, how), Figures())


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
