"""How a target's part of a run begins cold."""

from __future__ import annotations

from dataclasses import dataclass

from harness.engines.openai import OpenAIEngine


@dataclass(frozen=True, slots=True)
class ColdStart:
    """What keeps the texts of this run from hitting those of earlier ones."""

    nonce: str
    """Mixed into every content id; empty: the texts are those of the scenario's seed alone."""
    cache_salt: str | None
    """Sent with every request of the load."""
    words: str
    """What was done, for the report."""


def cold_start(how: str, nonce: str, engine: OpenAIEngine) -> ColdStart:
    """Make it so, as `--cold-start` says, with a `nonce` that no other run has.

    Raises TargetError if the engine cannot be asked to.
    """
    if how == "none":
        return ColdStart("", None, "none: the cache may hold texts of earlier runs with the same seed")
    if how == "salt":
        return ColdStart("", nonce, f"salt {nonce}: the cache is shared with no request that has another cache salt")
    if how == "reset":
        outcome = engine.reset_cache()
        if outcome.complete:
            return ColdStart("", None, f"reset: {outcome.message}")
        return ColdStart(nonce, None, f"nonce {nonce}, as the reset was not complete: {outcome.message}")
    return ColdStart(nonce, None, f"nonce {nonce}: no earlier run sent these texts")
