"""How much may be sent before a prompt is gone: by trials that are independent of each other, and bisection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.checks.sight import Ask, Sight

WHOLE = 0.99
"""A prompt that was held to this share counts as held whole: a page may round the counter that shows it."""
GONE = 0.05
"""One that was held to this share only is gone."""
PRECISION = 0.02
"""The capacity is found to this share of itself."""

IsOver = Callable[[], bool]
"""Whether no further trial may begin."""


class Trials:
    """Trials on one target, each with prompts that nobody sent before, so that none needs an empty cache.

    What earlier ones left behind is older than all that a trial sends.
    """

    def __init__(self, ask: Ask, grain_tokens: int) -> None:
        """`grain_tokens`: lengths of prompts are multiples of it (the engine's block or page; 1 if it has none)."""
        self._ask = ask
        self.grain_tokens = grain_tokens
        self._number = 0
        self.requests = 0
        self.tokens = 0
        """Sent in all trials together."""

    def begin(self) -> Trial:
        self._number += 1
        return Trial(self, f"{self._number}")

    def send(self, label: str, tokens: int, sight: Sight | None = None) -> float:
        """Share of the prompt that was held; 0 without a `sight` to tell it by."""
        self.requests += 1
        self.tokens += tokens
        seen = self._ask(label, tokens, counted=sight is not None and sight.source == "counter")
        return 0.0 if sight is None else sight.share(seen)

    def lengths(self, tokens: int, longest: int) -> list[int]:
        """The lengths of prompts that have `tokens` together, as nearly equal as the grain allows; none of 0 tokens."""
        if tokens <= 0:
            return []
        grains, most = round(tokens / self.grain_tokens), max(1, longest // self.grain_tokens)
        count = max(1, -(-grains // most))
        each, more = divmod(grains, count)
        return [(each + (number < more)) * self.grain_tokens for number in range(count)]


@dataclass(slots=True)
class Trial:
    """One of them."""

    trials: Trials
    label: str
    sent: int = 0

    def first(self, name: str, tokens: int, sight: Sight | None = None) -> float:
        """Send a prompt that the trial asks for again under the same name."""
        return self.trials.send(f"{self.label}/{name}", tokens, sight)

    def fill(self, lengths: list[int]) -> None:
        """Send prompts that nobody sent before."""
        for tokens in lengths:
            self.sent += 1
            self.trials.send(f"{self.label}/filler {self.sent}", tokens)


@dataclass(frozen=True, slots=True)
class Room:
    """What may follow a prompt."""

    held: int
    """It is held whole after so much."""
    lost: int | None
    """After so much it is not; None: no trial went so far."""
    is_found: bool
    """The two are as near to each other as was asked for."""
    loses_its_end: bool = False
    """It was seen held in part: its end goes before its beginning."""


def most_prompts(held: Callable[[int], bool], most: int, is_over: IsOver) -> Room:
    """How many other prompts may follow one, up to `most`: twice as many at each trial, then by bisection.

    The loss that the search ends with is seen twice, as in `most_tokens`.
    """
    least, lost, is_seen_twice = 0, None, False
    while not is_over() and least < most:
        is_found = lost is not None and lost - least == 1
        if is_found and is_seen_twice:
            break
        number = min(most, max(1, 2 * least))
        if lost is not None:
            number = lost if is_found else (least + lost) // 2
        if held(number):
            least, lost = number, None if number == lost else lost
        else:
            lost, is_seen_twice = number, number == lost
    return Room(least, lost, lost is not None and lost - least == 1)


@dataclass(frozen=True, slots=True)
class Sizes:
    """In tokens, of the prompts of a search."""

    first: int
    """The prompt whose loss is looked for."""
    shortest: int
    """The least that can follow it."""
    grain: int = 1


def most_tokens(share: Callable[[int], float], sizes: Sizes, hints: Sequence[int], is_over: IsOver) -> Room:
    """How many tokens of other prompts may follow one, to a share of `PRECISION`.

    `share(n)`: what is held of it after n tokens more. Each of `hints` is a guess, tried a little below and above;
    right ones save trials and wrong ones cost two. A prompt that is held in part gives a hint, too: the missing part is
    what was sent too much. The loss that the search ends with is seen twice: another client's request, or one that the
    engine was not through with, can drive a prompt out that has room.
    """
    least, lost, is_seen_twice, loses_its_end = 0, None, False, False
    waiting = [place for hint in hints for place in _around(hint, sizes)]
    while not is_over():
        is_found = _is_found(least, lost, sizes)
        if is_found and is_seen_twice:
            break
        tokens = lost if is_found and lost is not None else _next(waiting, least, lost, sizes)
        kept = share(tokens)
        if kept >= WHOLE:
            least, lost = tokens, None if tokens == lost else lost
            continue
        is_seen_twice = tokens == lost
        lost = tokens
        if kept > GONE:
            loses_its_end = True
            waiting = _around(tokens - round((1 - kept) * sizes.first), sizes)
    return Room(least, lost, _is_found(least, lost, sizes), loses_its_end)


def _is_found(least: int, lost: int | None, sizes: Sizes) -> bool:
    if lost is None:
        return False
    return lost <= max(least, sizes.shortest) or lost - least <= max(sizes.grain, PRECISION * (least + sizes.first))


def _around(hint: int, sizes: Sizes) -> list[int]:
    """Just below and just above it, nearer to each other than the precision."""
    half = max(1, int(0.4 * PRECISION * (hint + sizes.first)))
    return [hint - half, hint + half]


def _next(waiting: list[int], least: int, lost: int | None, sizes: Sizes) -> int:
    """The first of `waiting` that is still open, else twice as much or the middle; those passed over are dropped."""
    while waiting:
        place = max(waiting.pop(0), sizes.shortest)
        if place > least and (lost is None or place < lost):
            return place
    if lost is None:
        return max(sizes.first, sizes.shortest, 2 * least)
    return max(sizes.shortest, (least + lost) // 2)
