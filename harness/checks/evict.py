"""`kvswarm evict` at a target: fills the cache with prompts that nobody sent before, until the first one is gone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from harness.checks.evict_finding import found, no_sight
from harness.checks.evict_measure import Lengths, Told, choose_lengths, measure
from harness.checks.laboratory import Finding, Laboratory
from harness.checks.sight import NoSight, Seen
from harness.engines.base import Identity
from harness.engines.target import Target
from harness.errors import InputError, TargetError

WARM_UP_REQUESTS = 3
"""Sent first, on texts of their own: a server is slow at its very first requests."""


def evict(laboratory: Laboratory, seconds: float, prompt_tokens: int | None) -> Finding:
    """Measure how much the target's cache holds, and what goes first.

    After `seconds` no trial begins; `prompt_tokens`: length of the long prompts, None: what suits the target.
    Raises InputError for a length that the target does not take, TargetError if a request fails.
    """
    told = what_is_told(laboratory.identity, laboratory.engine.pins_slots)
    refuse_replicas(laboratory.target)
    lengths = fitting(laboratory.around_tokens, told, prompt_tokens)
    filler = Filler(laboratory)
    with laboratory.warming():
        for number in range(WARM_UP_REQUESTS):
            filler(f"warm-up {number}", lengths.short, counted=False)
    deadline = time.monotonic() + seconds
    measured = measure(filler, lengths, told, lambda: time.monotonic() >= deadline)
    if restarted := laboratory.restarted():
        return restarted
    if isinstance(measured, NoSight):
        return no_sight(measured, lengths, laboratory.engine.advice)
    return found(measured, told, seconds)


class Filler:
    """Sends prompts of known length to a laboratory; each text is a session, so that its first request is cold."""

    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory
        self._around_tokens = laboratory.around_tokens
        self._sessions: dict[str, int] = {}

    def __call__(self, label: str, tokens: int, counted: bool = True) -> Seen:
        """As `harness.checks.sight.Ask`. Raises TargetError if the request fails."""
        self._laboratory.group(self._sessions.setdefault(label, len(self._sessions)))
        prompt = self._laboratory.prompt((label, tokens - self._around_tokens))
        answer = self._laboratory.chat(label, prompt, counted=counted)
        if not answer.is_ok:
            raise TargetError(
                f"A prompt of {tokens:,} tokens to {self._laboratory.target.url} failed ({answer.reply.status}): "
                f"{answer.reply.error}. What it left in the cache is not known, so the check ended"
            )
        return Seen(answer.usage_cached_tokens, answer.counter_cached_tokens, answer.ttft_ms)


def what_is_told(identity: Identity, keeps_slots: bool) -> Told:
    """`keeps_slots`: its cache is its slots, each with one sequence (llama.cpp)."""
    return Told(
        context_tokens=identity.context_tokens,
        capacity_tokens=identity.capacity_tokens,
        granularity_tokens=identity.granularity_tokens,
        slots=identity.slots if keeps_slots else None,
    )


def refuse_replicas(target: Target) -> None:
    """Raise InputError where a prompt may go to a cache that never saw the one before it."""
    replicas = len(target.metrics_urls)
    if replicas > 1:
        raise InputError(
            f"Behind {target.url} are {replicas} replicas with a cache each, and a prompt may go to any of them: give "
            "the URL of one"
        )


def fitting(around_tokens: int, told: Told, prompt_tokens: int | None) -> Lengths:
    """Lengths of the prompts. Raises InputError if the context, or what the user asks for, has no room for them."""
    lengths = choose_lengths(around_tokens, told, prompt_tokens)
    if lengths is None:
        raise InputError(
            f"A context of {told.context_tokens} tokens has no room for prompts that show a hit: allow more at the "
            "server"
        )
    if prompt_tokens is not None and not lengths.short <= prompt_tokens <= (told.context_tokens or prompt_tokens):
        raise InputError(
            f"--prompt-tokens is {prompt_tokens}: give at least {lengths.short} tokens (with less, the chat template "
            f"is too large a part), and at most the context{_of(told)}"
        )
    return lengths


def _of(told: Told) -> str:
    return "" if told.context_tokens is None else f" of {told.context_tokens}"


def options(seconds: float, prompt_tokens: int | None) -> Mapping[str, Any]:
    """As run.json keeps them."""
    return {"seconds": seconds, "prompt_tokens": prompt_tokens}
