"""The whole measurement: how many prompts, how many tokens, and which one goes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.checks.evict_order import Order, by_number, by_tokens, order_of
from harness.checks.evict_search import IsOver, Room, Sizes, Trials, most_prompts, most_tokens
from harness.checks.sight import Ask, NoSight, Sight, Source, learn_sight

Kind = Literal["tokens", "prompts", "both"]
"""What the room is limited in."""

MOST_PROMPTS = 64
"""Short prompts that are tried at most: a cache of more is taken for one of tokens."""
LEAST_TOKENS = 128
"""Of a short prompt."""
TIMES_TEMPLATE = 16
"""A prompt is so many times as long as the template around it, which all have in common: llama.cpp puts a prompt into
the slot that has a tenth of it, and not into the one that was used longest ago."""
GRAINS = 4
"""A short prompt has so many blocks at least."""
PARTS = 8
"""Of a capacity that the engine tells, a long prompt is one of so many."""
USUAL_TOKENS = 2048
"""Of a long prompt, where the engine tells neither its capacity nor a context."""
SPARE_TOKENS = 8
"""Of the context, left for the answer and for a grain's remainder."""
SAME = 0.1
"""Two capacities that differ by this share of the larger one are the same."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of the prompts, in tokens, template included; multiples of the grain."""

    short: int
    long: int
    grain: int

    def first(self, tokens: int) -> int:
        """Of a prompt that is asked for again: a token more than whole blocks, as the last one is always computed."""
        return tokens + (1 if self.grain > 1 else 0)


@dataclass(frozen=True, slots=True)
class Told:
    """What the engine tells of itself; None: it does not."""

    context_tokens: int | None = None
    capacity_tokens: int | None = None
    granularity_tokens: int | None = None
    slots: int | None = None
    """Sequences that it holds, whatever their length: only of an engine whose cache is its slots."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found; None: it was not."""

    lengths: Lengths
    source: Source
    """By what hits were told."""
    short: Room | None
    """Short prompts that may follow one; None: hits do not show in prompts so short."""
    long: Room
    """Tokens of long prompts that may follow one."""
    order: Order | None
    kept: tuple[float, float] | None
    """Of a prompt that was asked for again, and of one that was not, the share that was held in the end."""
    requests: int
    tokens: int
    """Sent in all."""

    @property
    def prompts(self) -> int | None:
        """Short prompts that are held at the same time; None: more than were tried, or not found."""
        return self.short.held + 1 if self.short is not None and self.short.is_found else None

    @property
    def least_prompts(self) -> int | None:
        """Short prompts that were seen held at the same time."""
        return None if self.short is None else self.short.held + 1

    @property
    def held_tokens(self) -> int:
        """Tokens of long prompts that were seen held at the same time, the first one's among them."""
        return self.long.held + self.lengths.first(self.lengths.long)

    @property
    def long_prompts(self) -> int:
        """How many prompts that were."""
        return 1 + -(-self.long.held // self.lengths.long)

    @property
    def capacity_tokens(self) -> int | None:
        return self.held_tokens if self.long.is_found else None

    @property
    def kind(self) -> Kind | None:
        """None: two lengths of prompts do not tell."""
        if self.short is None or not self.long.is_found:
            return None
        if not self.short.is_found:
            return "tokens" if self.short.held + 1 > self.long_prompts else None
        if self.prompts == self.long_prompts:
            return "prompts"
        short_tokens = (self.short.held + 1) * self.lengths.short
        same = abs(short_tokens - self.held_tokens) <= SAME * max(short_tokens, self.held_tokens) + self.lengths.short
        return "tokens" if same else "both"


def choose_lengths(around_tokens: int, told: Told, wanted: int | None = None) -> Lengths | None:
    """The lengths that suit a target whose template puts `around_tokens` around a message; None: its context is too
    short for them. `wanted`: of a long prompt, if the user says so.
    """
    grain = told.granularity_tokens or 1
    short = _up(max(LEAST_TOKENS, TIMES_TEMPLATE * around_tokens, GRAINS * grain), grain)
    most = None if told.context_tokens is None else (told.context_tokens - SPARE_TOKENS) // grain * grain
    if wanted is not None:
        long = wanted
    elif told.slots is not None or (told.capacity_tokens is None and most is not None):
        long = most or USUAL_TOKENS
    elif told.capacity_tokens is not None:
        long = told.capacity_tokens // PARTS
    else:
        long = USUAL_TOKENS
    long = max(long // grain * grain, short)
    if most is not None:
        if most < short:
            return None
        long = min(long, most)
    return Lengths(short, long, grain)


def measure(ask: Ask, lengths: Lengths, told: Told, is_over: IsOver) -> Measured | NoSight:
    """Find the room by short and by long prompts, then the order; `NoSight` if a long prompt shows no hit at all.

    When `is_over` says so, no further trial begins, and what is not found by then stays unknown.
    """
    sight = learn_sight(ask, "long", lengths.first(lengths.long))
    if isinstance(sight, NoSight):
        return sight
    trials = Trials(ask, lengths.grain)
    short_sight = sight if lengths.short == lengths.long else learn_sight(ask, "short", lengths.first(lengths.short))
    short = None if isinstance(short_sight, NoSight) else _short(trials, lengths, told, short_sight, is_over)
    long = _long(trials, lengths, told, short, sight, is_over)
    found = Measured(lengths, sight.source, short, long, None, None, trials.requests, trials.tokens)
    filling = None
    if found.prompts is not None and found.kind != "tokens":
        filling = by_number(found.prompts, lengths.short, trials)
    elif found.capacity_tokens is not None:
        filling = by_tokens(found.capacity_tokens, lengths.long, trials)
    order, kept = None, None
    if filling is not None and not is_over():
        order_sight = learn_sight(ask, "order", filling.group[0])
        if isinstance(order_sight, Sight):
            order, kept = order_of(trials, filling, order_sight)
    return Measured(lengths, sight.source, short, long, order, kept, trials.requests, trials.tokens)


def _short(trials: Trials, lengths: Lengths, told: Told, sight: Sight, is_over: IsOver) -> Room:
    most = MOST_PROMPTS
    if told.capacity_tokens is not None and told.slots is None:  # well below what its tokens allow
        most = max(1, min(most, told.capacity_tokens // 2 // lengths.short))

    def held(number: int) -> bool:
        trial = trials.begin()
        trial.first("a", lengths.first(lengths.short))
        trial.fill([lengths.short] * number)
        return trial.first("a", lengths.first(lengths.short), sight) >= 0.5

    return most_prompts(held, most, is_over)


def _long(trials: Trials, lengths: Lengths, told: Told, short: Room | None, sight: Sight, is_over: IsOver) -> Room:
    sizes = Sizes(lengths.first(lengths.long), lengths.short, lengths.grain)
    hints = []
    if short is not None and short.is_found:
        hints.append(short.held * lengths.long)
    if told.capacity_tokens is not None:
        hints.append(told.capacity_tokens - sizes.first)

    def share(tokens: int) -> float:
        trial = trials.begin()
        trial.first("a", sizes.first)
        trial.fill(trials.lengths(tokens, lengths.long))
        return trial.first("a", sizes.first, sight)

    return most_tokens(share, sizes, hints, is_over)


def _up(tokens: int, grain: int) -> int:
    return -(-tokens // grain) * grain
