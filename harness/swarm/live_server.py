"""What a target's own metrics say while a run goes on: hit rate of its counters over a stretch, and its gauges."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from harness.collector import Sample, value
from harness.engines.base import Meaning, Metric


class _Counts(NamedTuple):
    t_s: float
    cached: float
    prompt: float
    """The cached ones included."""


class LiveServer:
    """Of one target."""

    def __init__(self, metrics: Sequence[Metric], capacity_tokens: int | None, stretch_s: float) -> None:
        """The counters' hit rate is over the last `stretch_s`."""
        self._metrics: dict[Meaning, Metric] = {metric.meaning: metric for metric in metrics}
        self._capacity_tokens = capacity_tokens
        self._stretch_s = stretch_s
        self._seen: deque[_Counts] = deque()

    def look(self, t_s: float, samples: Sequence[Sample]) -> dict[str, Any]:
        """The newest scrape in figures; None where it does not tell."""
        usage = self._value("kv_usage", samples)
        return {
            "counter_rate": self._rate(t_s, samples),
            "running": self._value("running_requests", samples),
            "waiting": self._value("waiting_requests", samples),
            "kv_in_use": None if usage is None or self._capacity_tokens is None else usage * self._capacity_tokens,
        }

    def _value(self, meaning: Meaning, samples: Sequence[Sample]) -> float | None:
        metric = self._metrics.get(meaning)
        return None if metric is None else value(metric, samples)

    def _rate(self, t_s: float, samples: Sequence[Sample]) -> float | None:
        """Ratio of what the counters grew by; None: too little is known, or they began anew."""
        cached, prompt = self._value("cached_prompt_tokens", samples), self._value("prompt_tokens", samples)
        if prompt is None and cached is not None:
            computed = self._value("computed_prompt_tokens", samples)
            prompt = None if computed is None else cached + computed
        if cached is None or prompt is None:
            return None
        if self._seen and (cached < self._seen[-1].cached or prompt < self._seen[-1].prompt):
            self._seen.clear()
        self._seen.append(_Counts(t_s, cached, prompt))
        while self._seen[0].t_s < t_s - self._stretch_s:
            self._seen.popleft()
        grown = prompt - self._seen[0].prompt
        return (cached - self._seen[0].cached) / grown if grown > 0 else None
