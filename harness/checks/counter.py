"""The engine's own count of cached prompt tokens, read when it has come to rest."""

from __future__ import annotations

from collections.abc import Callable

from harness.collector import Collector, value
from harness.engines.openai import OpenAIEngine

CountNow = Callable[[], int | None]
"""Cached prompt tokens since the engine started; None: not known."""


def cached_counter(collector: Collector, engine: OpenAIEngine) -> CountNow:
    """What reads the count off the target's metrics pages, waiting for it to settle.

    None comes of a target without pages or without such a counter, of pages that cannot be read, of an engine that does
    not come to rest, of a count with more digits than the page shows, and of a target whose samples a Prometheus has:
    those are too far apart for single requests.
    Tokens of an external tier, where the engine counts them apart, are cached tokens, too.
    """
    counter = next((metric for metric in engine.metrics if metric.meaning == "cached_prompt_tokens"), None)
    external = next((metric for metric in engine.metrics if metric.meaning == "external_cached_tokens"), None)

    def count_now() -> int | None:
        if counter is None or engine.target.prometheus is not None or not collector.settle("check", engine.is_idle):
            return None
        samples = collector.samples
        cached = value(counter, samples)
        more = value(external, samples) if external is not None else None
        # A page that rounds a large count no longer shows what one request adds to it.
        if cached is None or (counter.digits is not None and cached >= 10**counter.digits):
            return None
        return round(cached + (more or 0.0))

    return count_now
