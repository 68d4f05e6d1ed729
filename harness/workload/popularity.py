"""How often each of several things is chosen: all alike, or a few of them often."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag


class Zipf(BaseModel):
    """A few things are asked for often, most of them rarely."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    zipf: float = Field(
        gt=0, le=10, description="Exponent s: the k-th most popular one has weight 1 / k^s. Try 0.8 to 1.2."
    )


Popularity = Annotated[
    Annotated[Literal["uniform"], Tag("uniform")] | Annotated[Zipf, Tag("zipf")],
    Discriminator(lambda value: "uniform" if isinstance(value, str) else "zipf"),
]


def choice(popularity: Literal["uniform"] | Zipf, count: int, chance: float) -> int:
    """Which of `count` things, the most popular first, one random number from [0, 1) chooses."""
    if isinstance(popularity, Zipf):
        weights = _zipf_sums(count, popularity.zipf)
        return min(bisect_right(weights, chance * weights[-1]), count - 1)
    return int(chance * count)


@lru_cache(maxsize=8)
def _zipf_sums(count: int, exponent: float) -> tuple[float, ...]:
    """Running sums of the weights 1 / k^exponent, k from 1 to `count`."""
    return tuple(accumulate(k**-exponent for k in range(1, count + 1)))
