"""A cache that forgets nothing: what is found there and not in a real one was lost for want of room."""

from __future__ import annotations

from dataclasses import dataclass

from harness.cache.base import Prompt
from harness.cache.prompt import tokens


@dataclass(frozen=True, slots=True)
class Rules:
    """What an engine's cache finds, and from when on, however much room it has."""

    granularity_tokens: int = 1
    """Hits are whole blocks or pages of so many tokens."""
    found_when_sent: bool = False
    """A prompt is found by others as soon as it was admitted; else from its first token on."""
    keeps_last_prompt_token: bool = True
    """False: while an answer is under way, its prompt is found without its last token."""
    keeps_last_output_token: bool = False
    """True: all of an answer is found, not all but its last token."""
    tokens_after_hang_up: int | None = 0
    """Of a prompt that was given up before its first token, so many are computed beyond its hit; None: all."""


@dataclass(slots=True, eq=False)
class EndlessAdmission:
    """A request under way."""

    prompt: Prompt
    prompt_tokens: int
    cached_tokens: int
    prefilled: bool = False


class Endless:
    """A `harness.cache.base.CacheModel` without end, for prompts as `harness.analysis.request_log` makes them."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._known: dict[int, int] = {}
        """By an item's id, which stands for all before it, too: how many of its tokens are known."""

    def clear(self) -> None:
        self._known = {}

    def shared_tokens(self, prompt: Prompt) -> int:
        """Tokens of its longest known prefix, before any rounding."""
        shared = 0
        for identity, length in prompt:
            known = self._known.get(identity, 0)
            if known < length:
                return shared + known
            shared += length
        return shared

    def cached_tokens(self, prompt: Prompt, prompt_tokens: int) -> int:
        """Those that a request would reuse: whole blocks, and never the prompt's last token."""
        granularity = self._rules.granularity_tokens
        return min(self.shared_tokens(prompt), prompt_tokens - 1) // granularity * granularity

    def learn(self, prompt: Prompt) -> None:
        """All of it is known from now on."""
        for identity, length in reversed(prompt):
            if self._known.get(identity) == length:
                return  # and so is all before it
            self._known[identity] = length

    def learn_with(self, prompt: Prompt, output: Prompt) -> None:
        """A request is known with its answer, as far as that is kept."""
        self.learn(prompt)
        self._learn_first(output, tokens(output) - (not self._rules.keeps_last_output_token))

    def _learn_first(self, some: Prompt, count: int) -> None:
        """The first `count` tokens; what comes before `some` is known."""
        for identity, length in some:
            if count <= 0:
                return
            self._known[identity] = max(self._known.get(identity, 0), min(length, count))
            count -= length

    def admit(self, prompt: Prompt) -> EndlessAdmission:
        length = tokens(prompt)
        admission = EndlessAdmission(prompt, length, self.cached_tokens(prompt, length))
        if self._rules.found_when_sent:
            self.learn(prompt)
        return admission

    def prefilled(self, admission: EndlessAdmission) -> None:
        admission.prefilled = True
        if self._rules.keeps_last_prompt_token:
            self.learn(admission.prompt)
        else:
            self._learn_first(admission.prompt, admission.prompt_tokens - 1)

    def finish(self, admission: EndlessAdmission, output: Prompt) -> None:
        self.learn_with(admission.prompt, output)

    def abandon(self, admission: EndlessAdmission) -> None:
        """The answer so far is not known, and is left out."""
        if not admission.prefilled:
            more = self._rules.tokens_after_hang_up
            self._learn_first(
                admission.prompt, admission.prompt_tokens if more is None else admission.cached_tokens + more
            )
