"""One request inside a simulated engine, from its arrival to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

End = Literal["length", "stop", "abort"]


def _nobody_listens() -> None:
    pass


@dataclass(slots=True, eq=False)
class Generation:
    """What was asked for, and what became of it. All times are simulated seconds since the engine's start."""

    prompt_ids: Sequence[int]
    """One token at least."""
    max_tokens: int
    """Length of the answer, 1 at least."""
    notify: Callable[[], None] = _nobody_listens
    """Called after a step that computed some of its prompt, gave it tokens or ended it; what is new stands in
    `prefilled_tokens`, `output_ids` and `end`."""
    namespace: str = ""
    """Cache salt or extra key: only requests with the same one share a cache."""
    slot: int | None = None
    """llama.cpp: the slot that it asks for, and from its admission on the one that it has."""
    reads_cache: bool = True
    """False: it is computed in full (llama.cpp's `cache_prompt: false`)."""
    system_tokens: int = 0
    """mlx-lm: how many of the first tokens the system message is."""
    stop_ids: Sequence[int] = ()
    """An answer ends at the first of these that it comes to, with end "stop"."""

    arrived_s: float = 0.0
    admitted_s: float | None = None
    """When it was first scheduled; None: it waits."""
    first_token_s: float | None = None
    ended_s: float | None = None
    cached_tokens: int | None = None
    """Of the prompt, taken from the cache when it was first admitted; None: it waits."""
    prefilled_tokens: int = 0
    """Of the prompt, those that are there: from its admission on what the cache had, then what is computed too."""
    output_ids: list[int] = field(default_factory=list)
    end: End | None = None
    """None: it is under way."""
    refusal: str | None = None
    """Why it was ended without an answer: it can never fit."""
    preemptions: int = 0
    recomputed_tokens: int = 0
    """Tokens that were computed a second time after preemptions."""
