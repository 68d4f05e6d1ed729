"""Token hit rate from the deltas of the engine's own counters over the measured phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.analysis.pages import Replica, Unknown
from harness.analysis.window import Window, measured_window
from harness.record.manifest import MetricNames, TargetRecord


@dataclass(frozen=True, slots=True)
class Stretch:
    """What the counters of one replica say between two scrapes without a restart in between."""

    replica: str
    """Name of the target, and of the replica if the target has several."""
    start_ns: int
    end_ns: int
    rate: float | None
    cached_tokens: int | None
    prompt_tokens: int | None
    """Deltas; the prompt's includes the cached tokens."""
    reason: str | None
    """Why there is no rate; None if there is one."""


@dataclass(frozen=True, slots=True)
class CounterRate:
    """What the counters say; None and a reason where they cannot tell."""

    rate: float | None
    cached_tokens: int | None
    prompt_tokens: int | None
    """Deltas, summed over labels and replicas; the prompt's includes the cached tokens."""
    since: str | None
    """Moment of the first scrape: warmup_end, or before where there is no scrape at warmup_end."""
    since_ns: int | None
    reason: str | None
    """Why there is no rate; None if there is one."""
    stretches: tuple[Stretch, ...] = ()
    """Only if a replica was restarted: what can be told of all replicas, piece by piece. The pieces are not the whole:
    what was counted between the last scrape before a restart and the restart is lost."""
    cached_rounding: int = 0
    prompt_rounding: int = 0
    """How far the deltas may be off at most, in tokens, as the page rounds long numbers; 0: not at all."""


def of_counters(pages: Sequence[Replica], target: TargetRecord) -> CounterRate:
    """cached / prompt, of what the counters of these meanings grew by from warmup_end (else before) to after.

    Where the engine counts only those prompt tokens that it computed, it is cached / (cached + computed).
    """
    try:
        window = measured_window(pages, target)
    except Unknown as unknown:
        return CounterRate(None, None, None, None, None, str(unknown))
    whole = _ratio(window, target.metrics)
    pieces = window.stretches() if window.restarts else []
    return CounterRate(
        rate=whole.rate,
        cached_tokens=whole.cached_tokens,
        prompt_tokens=whole.prompt_tokens,
        cached_rounding=whole.cached_rounding,
        prompt_rounding=whole.prompt_rounding,
        since=window.since,
        since_ns=window.start_ns,
        reason=whole.reason,
        stretches=tuple(_stretch(piece, target.metrics) for piece in pieces),
    )


def metric_of(metrics: Sequence[MetricNames], meaning: str) -> MetricNames | None:
    return next((metric for metric in metrics if metric.meaning == meaning), None)


class _Ratio(NamedTuple):
    rate: float | None
    cached_tokens: int | None
    prompt_tokens: int | None
    reason: str | None
    cached_rounding: int = 0
    prompt_rounding: int = 0


def _ratio(window: Window, metrics: Sequence[MetricNames]) -> _Ratio:
    cached = metric_of(metrics, "cached_prompt_tokens")
    prompt = metric_of(metrics, "prompt_tokens") or metric_of(metrics, "computed_prompt_tokens")
    if cached is None or prompt is None:
        return _Ratio(None, None, None, f"the engine does not count {'prompt' if cached else 'cached'} tokens")
    try:
        hits, tokens = window.growth(cached), window.growth(prompt)
    except Unknown as unknown:
        return _Ratio(None, None, None, str(unknown))
    off_hits, off_tokens = window.rounding(cached), window.rounding(prompt)
    if prompt.meaning == "computed_prompt_tokens":
        tokens += hits
        off_tokens += off_hits
    if not tokens:
        return _Ratio(None, hits, tokens, f"the counters did not move ({prompt.counts})", off_hits, off_tokens)
    return _Ratio(hits / tokens, hits, tokens, None, off_hits, off_tokens)


def _stretch(piece: Window, metrics: Sequence[MetricNames]) -> Stretch:
    (span,) = piece.spans
    ratio = _ratio(piece, metrics)
    return Stretch(
        replica=span.replica.name,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        rate=ratio.rate,
        cached_tokens=ratio.cached_tokens,
        prompt_tokens=ratio.prompt_tokens,
        reason=ratio.reason,
    )
