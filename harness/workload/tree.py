"""The sharing tree: levels of contents, from what all sessions share down to what few of them do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice, product
from operator import mul
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from harness.workload.content import content_id
from harness.workload.distribution import Draws, Length, LogNormal, LongestDraws, Uniform
from harness.workload.popularity import Popularity, choice
from harness.workload.session import Message, Segment, Session

COUNTED = 1000
"""Of more contents than these the lengths are not added up one by one: they count as long as these on average."""


class Level(BaseModel):
    """One level of the tree: contents that stand one after the other in the prompt, the root's first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,29}$",
        description="What the level is, such as tenant: letters, digits, dot, dash and underscore. "
        "Another name gives other texts.",
    )
    fan_out: int = Field(
        strict=True, ge=1, description="How many different contents hang under each one of the level above."
    )
    tokens: Length = Field(description="Tokens of a content; drawn once for each content.")
    popularity: Popularity = Field(
        default="uniform",
        description="How a session chooses among the contents: uniform, or {zipf: s}, where the first is the most "
        "popular.",
    )
    tenant: bool = Field(
        default=False,
        strict=True,
        description="true: the choice at this level is the session's tenant. At most one level can be it.",
    )


class Share(BaseModel):
    """A share of prompt tokens to be reached by a tree of one level, whose length is solved for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float = Field(
        strict=True, gt=0, lt=1, description="Share of all prompt tokens that a cache without limits would serve."
    )
    sessions: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=10_000,
        description="The share is that of a run's first so many sessions, which find an empty cache; "
        "left out: of many sessions, when all that sessions share has been sent before.",
    )
    fan_out: int = Field(
        default=1, strict=True, ge=1, description="How many different contents there are, each session having one."
    )
    popularity: Popularity = Field(
        default="uniform", description="How a session chooses among the contents: uniform, or {zipf: s}."
    )


def _form(value: Any) -> str | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number"
    if isinstance(value, (dict, Share)):
        return "goal"  # not "share", which is a key of it: errors are looked up by these names
    return "levels" if isinstance(value, (list, tuple)) else None


Sharing = Annotated[
    Annotated[float, Field(strict=True, gt=0, lt=1), Tag("number")]
    | Annotated[Share, Tag("goal")]
    | Annotated[tuple[Level, ...], Field(min_length=1), Tag("levels")],
    Discriminator(
        _form,
        custom_error_type="sharing",
        custom_error_message="expected a number between 0 and 1, {share: s, ...} or a list of levels, "
        "each with name, fan_out and tokens",
    ),
]


def check_levels(levels: Sequence[Level]) -> None:
    """Raises ValueError if two levels have one name, or more than one is the tenant's."""
    names = [level.name for level in levels]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two levels are called {name}; each needs a name of its own")
    tenants = [level.name for level in levels if level.tenant]
    if len(tenants) > 1:
        raise ValueError(f"the levels {' and '.join(tenants)} are both the tenant's; at most one can be")


class Branch(NamedTuple):
    """One session's way from the root down."""

    segments: tuple[Segment, ...]
    tenant: str | None
    """Name of the tenant's level, then the choices from the root down to it where there is a choice: tenant-3."""


def branch(levels: Sequence[Level], scenario_seed: int, seed: str, number: int) -> Branch:
    """The way that session `number` takes; `seed` (the scenario's and the nonce) goes into the texts only.

    Each level chooses with random numbers that serve no other purpose.
    """
    draws = Draws(scenario_seed, "branch", number)
    choices = [choice(level.popularity, level.fan_out, draws.stream(level.name).random()) for level in levels]
    names = _names(levels, choices)
    segments = tuple(
        Segment(
            "shared",
            content_id(seed, "sharing", *name),
            _tokens(level, scenario_seed, name),
            tree_level=level.name,
        )
        for level, name in zip(levels, names, strict=True)
    )
    return Branch(segments, _tenant(levels, choices))


def longest_branch(levels: Sequence[Level]) -> Branch:
    """A way on which every length is the largest that it can be."""
    segments = tuple(
        Segment(
            "shared",
            content_id("", "sharing", level.name),
            LongestDraws().length("tokens", level.tokens),
            tree_level=level.name,
        )
        for level in levels
    )
    return Branch(segments, None)


def with_branch(session: Session, way: Branch) -> Session:
    """The session with the contents of its way at the beginning of its system message, made if there is none."""
    if not way.segments:
        return session
    first = session.opening[0].segments if session.opening else ()
    opening = (Message("system", (*way.segments, *first)), *session.opening[1:])
    return replace(session, opening=opening, tenant=way.tenant)


def ways(levels: Sequence[Level]) -> int:
    """How many different ways there are from the root down."""
    return _contents(levels)[-1] if levels else 1


def tree_tokens(levels: Sequence[Level], scenario_seed: int) -> float:
    """Tokens of all contents of the tree; of a level of more than `COUNTED`, by the average of the first ones."""
    total = 0.0
    for depth, count in enumerate(_contents(levels)):
        above = levels[: depth + 1]
        choices = product(*(range(level.fan_out) for level in above))
        total += total_of(
            count,
            levels[depth].tokens,
            (_tokens(levels[depth], scenario_seed, _names(above, each)[-1]) for each in choices),
        )
    return total


def total_of(count: int, length: int | Uniform | LogNormal, lengths: Iterator[int]) -> float:
    """The sum of `count` lengths drawn from `length`; of more than `COUNTED`, by the average of the first ones."""
    if isinstance(length, int):
        return float(count * length)
    first = list(islice(lengths, min(count, COUNTED)))
    return count * sum(first) / len(first)


def _contents(levels: Sequence[Level]) -> list[int]:
    """How many contents each level has."""
    return list(accumulate((level.fan_out for level in levels), mul))


def _names(levels: Sequence[Level], choices: Sequence[int]) -> list[tuple[str | int, ...]]:
    """What names the content at each level: names and choices of all levels from the root down to it."""
    pairs = ((level.name, number) for level, number in zip(levels, choices, strict=True))
    return list(accumulate(pairs, lambda name, pair: (*name, *pair)))


def _tokens(level: Level, scenario_seed: int, name: tuple[str | int, ...]) -> int:
    return Draws(scenario_seed, "sharing", *name).length("tokens", level.tokens)


def _tenant(levels: Sequence[Level], choices: Sequence[int]) -> str | None:
    for depth, level in enumerate(levels):
        if level.tenant:
            chosen = [
                str(number) for above, number in zip(levels, choices[: depth + 1], strict=False) if above.fan_out > 1
            ]
            return f"{level.name}-{'.'.join(chosen) or '0'}"
    return None
