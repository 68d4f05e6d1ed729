"""When an engine has come to rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.collector.metrics_page import SeriesKey, sums
from harness.collector.scrape import Scrape


class Rest:
    """Looks at the scrapes of one page, one after the other."""

    def __init__(self, is_idle: Callable[[Mapping[str, float]], bool | None]) -> None:
        self._is_idle = is_idle
        self._counts: dict[SeriesKey, float] | None = None

    def is_reached(self, scrape: Scrape) -> bool:
        """Whether this scrape and the one before show an idle engine whose counters stand still."""
        quiet = scrape.error is None and self._is_idle(sums(scrape.samples)) is not False
        counts = {sample.key: sample.value for sample in scrape.samples if sample.counts_work}
        reached = quiet and counts == self._counts
        self._counts = counts if quiet else None
        return reached
