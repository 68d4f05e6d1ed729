"""The measured phase on the metrics pages of a target: from one scrape of each replica to another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.pages import Replica, Unknown, clock_time, some_pages
from harness.record.manifest import MetricNames, TargetRecord


@dataclass(frozen=True, slots=True)
class Span:
    """One replica, from its first scrape that counts to its last."""

    replica: Replica
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Window:
    """Of all replicas, or of some."""

    since: str
    """Moment of the first scrapes: warmup_end, or before where there is no scrape at warmup_end."""
    spans: tuple[Span, ...]

    @property
    def start_ns(self) -> int:
        return min(span.start_ns for span in self.spans)

    @property
    def restarts(self) -> str | None:
        """A sentence if a replica was restarted meanwhile."""
        found = [
            f"{span.replica.name} was restarted between {clock_time(before)} and {clock_time(after)} UTC"
            for span in self.spans
            for before, after in span.replica.restarts(span.start_ns, span.end_ns)
        ]
        return "; ".join(found) or None

    def stretches(self) -> list[Window]:
        """The window of each replica by itself, cut at its restarts."""
        return [
            Window(self.since, (Span(span.replica, start_ns, end_ns),))
            for span in self.spans
            for start_ns, end_ns in span.replica.stretches(span.start_ns, span.end_ns)
        ]

    def growth(self, metric: MetricNames) -> int:
        """Of a counter, each replica by itself, then summed. Raises Unknown, also if a replica was restarted."""
        if self.restarts:
            raise Unknown(self.restarts)
        return round(sum(span.replica.growth(metric, span.start_ns, span.end_ns) for span in self.spans))

    def rounding(self, metric: MetricNames) -> int:
        """How far `growth` may be off at most, as the pages round long numbers."""
        return math.ceil(sum(span.replica.rounding(metric, span.start_ns, span.end_ns) for span in self.spans))


def measured_window(pages: Sequence[Replica], target: TargetRecord) -> Window:
    """From warmup_end (else before) to after. Raises Unknown if a replica has no page for one of them."""
    some_pages(pages, target)
    since = "warmup_end" if any("warmup_end" in replica.last_at for replica in pages) else "before"
    return Window(
        since, tuple(Span(replica, replica.border_ns(since), replica.border_ns("after")) for replica in pages)
    )
