"""The engine's own count of cached prompt tokens, read when it has come to rest."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.collector import Collector, value
from harness.engines.openai import OpenAIEngine

CountNow = Callable[[], int | None]
"""Cached prompt tokens since the engine started; None: not known."""


SLOW_S = 3.0
"""Pages that take longer than this to settle are not read between requests: a check would take many minutes."""


def cached_counter(
    collector: Collector, engine: OpenAIEngine, note: Callable[[str], object] = lambda sentence: None
) -> CountNow:
    """What reads the count off the target's metrics pages, waiting for it to settle.

    None comes of a target without pages or without such a counter, of pages that cannot be read, of an engine that does
    not come to rest, of a count with more digits than the page shows, and of a target whose samples a Prometheus has:
    those are too far apart for single requests. `note` is told why pages that there are cannot be read.
    Tokens of an external tier, where the engine counts them apart, are cached tokens, too.
    """
    counter = next((metric for metric in engine.metrics if metric.meaning == "cached_prompt_tokens"), None)
    external = next((metric for metric in engine.metrics if metric.meaning == "external_cached_tokens"), None)

    def count_now() -> int | None:
        if counter is None or engine.target.prometheus is not None:
            return None
        began_s = time.monotonic()
        settled = collector.settle("check", engine.is_idle)
        took_s = time.monotonic() - began_s
        if not settled or took_s > SLOW_S:
            if engine.target.metrics_urls:
                reason = f"reading it takes {took_s:.0f} s" if settled else collector.reason
                note(f"the engine's own counter is left out: {reason}")
            return None
        samples = collector.samples
        cached = value(counter, samples)
        more = value(external, samples) if external is not None else None
        # A page that rounds a large count no longer shows what one request adds to it.
        if cached is None or (counter.digits is not None and cached >= 10**counter.digits):
            return None
        return round(cached + (more or 0.0))

    return count_now
