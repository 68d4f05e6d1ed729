"""The metrics page of llama.cpp's server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

from harness.sim.generation import Generation
from harness.sim.manners.llama_cpp_timings import admitted
from harness.sim.scheduler import Step

NEVER = ("spec_decode_num_draft_tokens_total", "spec_decode_num_accepted_tokens_total", "spec_decode_num_drafts_total")
_HELP = {
    "prompt_tokens_total": "Number of prompt tokens processed, excluding cached tokens",
    "prompt_tokens_cached_total": "Number of prompt tokens reused from the cache",
    "prompt_seconds_total": "Total time spent processing prompts",
    "tokens_predicted_total": "Number of generation tokens processed",
    "tokens_predicted_seconds_total": "Total time spent generating tokens",
    "n_decode_total": "Total number of llama_decode() calls, excluding speculative decoding and multimodal decoding",
    "n_tokens_max": "Largest observed sequence length (prompt + generation)",
    "spec_decode_num_draft_tokens_total": "Speculative: Total draft tokens generated",
    "spec_decode_num_accepted_tokens_total": "Speculative: Total draft tokens accepted by the target model",
    "spec_decode_num_drafts_total": "Speculative: Total speculative decoding verification steps",
    "prompt_tokens_seconds": "Average prompt throughput in tokens/s",
    "predicted_tokens_seconds": "Average generation throughput in tokens/s",
    "requests_processing": "Number of requests processing",
    "requests_deferred": "Number of requests deferred",
    "n_busy_slots_per_decode": "Average number of busy slots per llama_decode() call",
}


class Metrics:
    """An observer of the scheduler, and the page that shows what it saw.

    As in the real server: a prompt counts when it is computed, an answer when its request ends; the two rates are
    those since the page was last read; and every number has six significant digits.
    """

    def __init__(self) -> None:
        self.start_us = time.monotonic_ns() // 1000
        self._waiting: set[Generation] = set()
        self._running: set[Generation] = set()
        self._prompt_tokens = self._cached_tokens = self._predicted_tokens = 0
        self._prompt_s = self._predicted_s = 0.0
        self._decodes = self._busy_slots = self._greatest_tokens = 0
        self._recent_prompt = self._recent_predicted = (0, 0.0)
        """Tokens and seconds since the page was last read."""

    def arrived(self, generation: Generation) -> None:
        self._waiting.add(generation)

    def admitted(self, generation: Generation) -> None:
        self._waiting.discard(generation)
        self._running.add(generation)

    def first_token(self, generation: Generation) -> None:
        assert generation.first_token_s is not None
        begun_s, cached = admitted(generation)
        tokens, seconds = len(generation.prompt_ids) - cached, generation.first_token_s - begun_s
        self._prompt_tokens += tokens
        self._cached_tokens += cached
        self._prompt_s += seconds
        self._recent_prompt = _plus(self._recent_prompt, tokens, seconds)

    def stepped(self, step: Step) -> None:
        self._decodes += 1
        self._busy_slots += len(self._running)

    def preempted(self, generation: Generation) -> None:
        raise AssertionError("llama.cpp's server preempts nobody")

    def ended(self, generation: Generation) -> None:
        self._waiting.discard(generation)
        self._running.discard(generation)
        if generation.first_token_s is None or generation.ended_s is None:
            return
        tokens, seconds = len(generation.output_ids), generation.ended_s - generation.first_token_s
        self._predicted_tokens += tokens
        self._predicted_s += seconds
        self._greatest_tokens = max(self._greatest_tokens, _held(generation))
        # The first token's time is the prompt's.
        self._recent_predicted = _plus(self._recent_predicted, tokens - 1, seconds)

    def page(self, lag_s: float = 0.0, greatest_lag_s: float = 0.0) -> str:
        """Its text; the rates begin anew. At its end stands what no real server has: how far this one is behind."""
        lines: list[str] = []
        for name, kind, value in self._values():
            lines.append(f"# HELP llamacpp:{name} {_HELP[name]}")
            lines.append(f"# TYPE llamacpp:{name} {kind}")
            lines.append(f"llamacpp:{name} {value:.6g}")
        self._recent_prompt = self._recent_predicted = (0, 0.0)
        for name, value in (("lag", lag_s), ("greatest_lag", greatest_lag_s)):
            lines.append(f"# TYPE kvswarm_sim_{name}_seconds gauge")
            lines.append(f"kvswarm_sim_{name}_seconds {value:.6g}")
        return "\n".join([*lines, ""])

    def _values(self) -> Iterator[tuple[str, Literal["counter", "gauge"], float]]:
        yield "prompt_tokens_total", "counter", self._prompt_tokens
        yield "prompt_tokens_cached_total", "counter", self._cached_tokens
        yield "prompt_seconds_total", "counter", self._prompt_s
        yield "tokens_predicted_total", "counter", self._predicted_tokens
        yield "tokens_predicted_seconds_total", "counter", self._predicted_s
        yield "n_decode_total", "counter", self._decodes
        yield "n_tokens_max", "counter", max([self._greatest_tokens, *map(_held, self._running)])
        for name in NEVER:
            yield name, "counter", 0
        yield "prompt_tokens_seconds", "gauge", _rate(*self._recent_prompt)
        yield "predicted_tokens_seconds", "gauge", _rate(*self._recent_predicted)
        yield "requests_processing", "gauge", len(self._running)
        yield "requests_deferred", "gauge", len(self._waiting)
        yield "n_busy_slots_per_decode", "gauge", self._busy_slots / self._decodes if self._decodes else 0.0


def _plus(so_far: tuple[int, float], tokens: int, seconds: float) -> tuple[int, float]:
    return so_far[0] + tokens, so_far[1] + seconds


def _rate(tokens: int, seconds: float) -> float:
    return tokens / seconds if seconds else 0.0


def _held(generation: Generation) -> int:
    """Tokens in the slot: the last one of the answer is not computed."""
    return len(generation.prompt_ids) + len(generation.output_ids) - 1 if generation.output_ids else 0
