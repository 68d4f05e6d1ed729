"""The prompts of the check: how long they are, where they part, and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from harness.workload.content import common_words, content_id, id_words
from harness.workload.lexicon import Lexicon
from harness.workload.scenario import MultiRound
from harness.workload.session import Message, Segment

OUTPUT_TOKENS = 8
USUAL_TOKENS, MOST_TOKENS = 1024, 16_384
"""Length of the prompts, unless the engine's block or the template asks for more, or the context allows less only."""
BLOCKS = 4
"""Whole blocks that a prompt has room for, where the engine tells their size."""
CHANCE_WORDS = 3
"""First words that a fresh text may share with one of the many sent before, the words being few."""

SCENARIO = MultiRound(name="check", kind="multi-round", rounds=1, user_tokens=USUAL_TOKENS, output_tokens=OUTPUT_TOKENS)
"""Prompts of one user message, all words: what a lexicon for the check alone has to know."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """In tokens from the prompt's first, template included. With prompts of 1024: 511 and 405.

    Half of it and the whole, each less one, round down to other multiples for every power of two; the third length
    tells apart most other sizes that the two leave open.
    """

    prompt: int

    @property
    def half(self) -> int:
        return self.prompt // 2 - 1

    @property
    def part(self) -> int:
        return self.prompt * 405 // 1024


@dataclass(frozen=True, slots=True)
class Prompt:
    messages: tuple[Message, ...]
    least_shared: int
    """Tokens that it surely shares with the cold prompt, which is sent first."""
    most_shared: int


def choose_lengths(lexicon: Lexicon, context_tokens: int | None, granularity_tokens: int | None) -> Lengths | None:
    """The lengths that suit a target; None if its context has no room for prompts that tell anything."""
    least_part = _around(lexicon) + id_words(len(lexicon.words))
    prompt = USUAL_TOKENS
    while prompt < MOST_TOKENS and (
        prompt < BLOCKS * (granularity_tokens or 1) or Lengths(prompt).part < 2 * least_part
    ):
        prompt *= 2
    while context_tokens is not None and prompt + OUTPUT_TOKENS > context_tokens:
        prompt //= 2
    return Lengths(prompt) if Lengths(prompt).part >= least_part else None


def prompts(lexicon: Lexicon, label: str, lengths: Lengths) -> dict[str, Prompt]:
    """By the name of the request: cold, repeat, half and part, and `ids`, which shares nothing with these.

    Texts are made of `label`, which must be new for each check. Where lengths are not exact, a prompt may part from the
    cold one up to `tolerance_tokens` earlier or later.
    """
    seed = f"{label}/check"
    template = lexicon.template
    before = template.head["user"] + template.opener_tokens
    rest = lengths.prompt - _around(lexicon)
    first = Segment("user", content_id(seed, "first"), lengths.part - before)
    second = Segment("user", content_id(seed, "second"), lengths.half - lengths.part)
    third = Segment("user", content_id(seed, "third"), rest - first.tokens - second.tokens)
    after_half = Segment("user", _parting(seed, "half", third, lexicon), third.tokens)
    after_part = Segment("user", _parting(seed, "part", second, lexicon), second.tokens + third.tokens)
    unplaced = 0 if template.head_known else template.tail["user"]
    off = tolerance_tokens(lexicon, lengths)
    cold = _message(first, second, third)
    return {
        "cold": Prompt(cold, 0, before + unplaced + CHANCE_WORDS),
        "repeat": Prompt(cold, lengths.prompt, lengths.prompt),
        "half": Prompt(_message(first, second, after_half), lengths.half - off, lengths.half + unplaced + off),
        "part": Prompt(_message(first, after_part), lengths.part - off, lengths.part + unplaced + off),
        "ids": Prompt(_message(Segment("user", content_id(seed, "ids"), rest)), 0, before + unplaced + CHANCE_WORDS),
    }


def tolerance_tokens(lexicon: Lexicon, lengths: Lengths) -> int:
    """How far a length may be from the plan: nothing where the target counts as learnt, else a twentieth."""
    return 0 if lexicon.exact else lengths.prompt // 20


def _around(lexicon: Lexicon) -> int:
    """Tokens of the template around one user message."""
    return lexicon.template.tokens([Message("user", ())])


def _message(*segments: Segment) -> tuple[Message, ...]:
    return (Message("user", segments),)


def _parting(seed: str, name: str, other: Segment, lexicon: Lexicon) -> int:
    """An id whose text differs from that of `other` in its first word."""
    size = len(lexicon.words)
    candidates = (content_id(seed, name, number) for number in count())
    return next(identity for identity in candidates if common_words(identity, other.content_id, size) == 0)
