"""What llama.cpp's server tells of a request's times and tokens."""

from __future__ import annotations

from collections.abc import Mapping

from harness.sim.generation import Generation

Figures = Mapping[str, float]

SHORTEST_MS = 0.001
"""What it gives as the time of an answer of one token."""


def timings(cached: int, computed: int, prompt_ms: float, predicted: int, predicted_ms: float) -> Figures:
    """The object `timings`: tokens from the cache, tokens computed and how long that took, the same of the answer.

    The first token of an answer takes no time of its own: its rates are those of the others.
    """
    later = max(0, predicted - 1)
    return {
        "cache_n": cached,
        "prompt_n": computed,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": prompt_ms / computed if computed else 0.0,
        "prompt_per_second": 1e3 / prompt_ms * computed if prompt_ms else 0.0,
        "predicted_n": predicted,
        "predicted_ms": predicted_ms,
        "predicted_per_token_ms": predicted_ms / later if later else 0.0,
        "predicted_per_second": 1e3 / predicted_ms * later if later else 0.0,
    }


def timings_of(generation: Generation, now_s: float, predicted: int | None = None) -> Figures:
    """Those of a request that has been admitted, when `predicted` tokens of its answer (None: all) are there."""
    begun_s, cached = admitted(generation)
    predicted = len(generation.output_ids) if predicted is None else predicted
    if generation.first_token_s is None:
        return timings(cached, generation.prefilled_tokens - cached, _ms(now_s - begun_s), 0, 0.0)
    computed = len(generation.prompt_ids) - cached
    predicted_ms = max(SHORTEST_MS, _ms(now_s - generation.first_token_s)) if predicted else 0.0
    return timings(cached, computed, _ms(generation.first_token_s - begun_s), predicted, predicted_ms)


def usage(generation: Generation) -> Mapping[str, object]:
    """The object `usage` of a request that has ended."""
    prompt, answer = len(generation.prompt_ids), len(generation.output_ids)
    return {
        "completion_tokens": answer,
        "prompt_tokens": prompt,
        "total_tokens": prompt + answer,
        "prompt_tokens_details": {"cached_tokens": admitted(generation)[1]},
    }


def progress(generation: Generation, processed: int, now_s: float) -> Figures:
    """The object `prompt_progress` when so many tokens of the prompt are there; times in whole ms."""
    begun_s, cached = admitted(generation)
    return {
        "total": len(generation.prompt_ids),
        "cache": cached,
        "processed": processed,
        "time_ms": int(1e3 * (now_s - begun_s)),
    }


def admitted(generation: Generation) -> tuple[float, int]:
    """When, and with how many tokens from the cache."""
    assert generation.admitted_s is not None
    assert generation.cached_tokens is not None
    return generation.admitted_s, generation.cached_tokens


def _ms(seconds: float) -> float:
    """As it measures: in whole microseconds."""
    return round(1e3 * seconds, 3)
