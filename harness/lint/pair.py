"""Two prompts: where they part, one difference after the other, and what is lost behind each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.lint.differing import Place
from harness.lint.excerpt import Excerpt, excerpts, place_in
from harness.lint.rule import Step
from harness.lint.segments import ChatPrompt, Segment, Segments
from harness.lint.steps import steps
from harness.lint.tokens import Tokens, common_tokens

LEAST_TOKENS = 16
"""What loses less than one of vLLM's blocks is not named, ..."""
LEAST_SHARE = 0.01
"""... nor what loses less than this share of its prompt."""
MOST_NEAR = 4
"""Differences that follow each other with less than `LEAST_TOKENS` between them; more are two different texts."""


@dataclass(frozen=True, slots=True)
class Parting:
    """A difference that costs something."""

    step: Step
    segment: Segment
    """Of the later prompt, in which it lies."""
    character: int
    """Of the segment, from 0."""
    token: int
    """Of the whole prompt, from 0."""
    lost_tokens: int
    excerpts: tuple[Excerpt, Excerpt]


@dataclass(frozen=True, slots=True)
class _Known:
    """A difference that a rule knows."""

    step: Step
    at: Place
    before: tuple[Segments, Segments]
    """Both prompts as the steps before left them; `at` is a place in these."""
    shared_tokens: int
    """What these share."""


class Pair:
    """An earlier and a later prompt."""

    def __init__(self, earlier: ChatPrompt, later: ChatPrompt, tokens: Tokens) -> None:
        self._earlier, self._later, self._tokens = earlier, later, tokens

    def parts(self, shared_tokens: int, least_tokens: int = LEAST_TOKENS) -> list[Parting]:
        """The differences behind which `least_tokens` and `LEAST_SHARE` of the later prompt are lost.

        `shared_tokens`: what the later prompt shares with any before it, which is not lost.
        """
        known, in_the_end = self._known()
        least = max(least_tokens, LEAST_SHARE * self._tokens.count(self._later))
        found = []
        for number, one in enumerate(known):
            lost_tokens = in_the_end - max(shared_tokens, one.shared_tokens)
            if lost_tokens >= least:
                found.append(self._parting(one, lost_tokens, is_first=number == 0))
        return found

    def _known(self) -> tuple[list[_Known], int]:
        """Differences up to the last one with something behind it, and what the prompts share without them."""
        before = (self._earlier.segments, self._later.segments)
        shared_tokens = in_the_end = self._common(*before)
        known: list[_Known] = []
        kept = 0
        for at, step in steps(*before):
            after = (step.earlier, step.later)
            if all(self._stream(one) == self._stream(other) for one, other in zip(before, after, strict=True)):
                before = after  # the template does not show what differs, such as tools
                continue
            known.append(_Known(step, at, before, shared_tokens))
            gained_tokens = self._common(*after) - shared_tokens
            before, shared_tokens = after, shared_tokens + gained_tokens
            if gained_tokens >= LEAST_TOKENS:
                kept, in_the_end = len(known), shared_tokens
            elif len(known) - kept == MOST_NEAR:
                break
        return known[:kept], in_the_end

    def _parting(self, known: _Known, lost_tokens: int, is_first: bool) -> Parting:
        original = self._later.segments
        place = place_in(original, known.before[1], known.at)
        segment = original[place.segment]
        token = known.shared_tokens
        if not is_first:
            up_to = (*original[: place.segment], replace(segment, text=segment.text[: place.at]))
            token = self._common(original, up_to)
        return Parting(known.step, segment, place.at, token, lost_tokens, excerpts(*known.before, known.at))

    def _common(self, one: Segments, other: Segments) -> int:
        return common_tokens(self._stream(one), self._stream(other))

    def _stream(self, segments: Segments) -> bytes:
        return self._tokens.stream(self._later.arranged(segments))
