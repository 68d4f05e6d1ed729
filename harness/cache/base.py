"""What every cache model offers, and the values that they work on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

Item = tuple[int, int]
"""(id, tokens): a piece of a prompt whose text follows from its id alone."""
Prompt = Sequence[Item]
"""A prompt from its first token to its last, in pieces of one token at least.

Two prompts share tokens exactly as far as their items are equal: different items that follow the same items differ in
their first token. If one id stands in two prompts with different lengths, the shorter is a prefix of the longer.
`harness.cache.prompt` makes such prompts of the paths that a run records.
"""


class Admission(Protocol):
    """One request's hold on the cache, from its admission to its end."""

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt that were reused."""
        ...


A = TypeVar("A", bound=Admission)
"""A model's own kind of admission."""
A_contra = TypeVar("A_contra", bound=Admission, contravariant=True)
"""The same where it is only handed over."""


class Admitted(Protocol[A_contra]):
    """What becomes of requests that were admitted."""

    def prefilled(self, admission: A_contra) -> None:
        """All of the prompt is computed, and the first token of the answer is there."""
        ...

    def finish(self, admission: A_contra, output: Prompt) -> None:
        """The answer is complete, `output` with all its tokens; what it held may be reused or evicted now."""
        ...

    def abandon(self, admission: A_contra) -> None:
        """The client hung up."""
        ...


class CacheModel(Admitted[A], Protocol[A]):
    """One engine's cache, by its own rules.

    A request goes through `admit`, `prefilled` and `finish`, in this order, each once; those of several requests may
    interleave. A request that was given up goes from wherever it is to `abandon` instead. Equal calls in equal order
    give equal results.
    """

    def admit(self, prompt: Prompt) -> A:
        """Look the prompt up and take room for it: what the engine does when it starts to work on a request."""
        ...

    def clear(self) -> None:
        """As after a start or a complete reset. No request may be under way."""
        ...


def serve(model: CacheModel[A], prompt: Prompt, output: Prompt) -> int:
    """Cached tokens of a request that has the engine for itself from admission to end."""
    admission = model.admit(prompt)
    model.prefilled(admission)
    model.finish(admission, output)
    return admission.cached_tokens
