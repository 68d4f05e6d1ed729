"""The steps from what requests shared to what the engine reported, summed over some requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd


@dataclass(frozen=True, slots=True)
class Steps:
    """Sums over some requests, in tokens.

    shareable - granularity - in_flight - capacity - routing = expected, and expected - unexplained = measured, where a
    step that is not known (None) takes nothing away.
    """

    requests: int
    prompt_tokens: int
    """By plan."""
    shareable: int
    """What a cache without end would find that knew each request as soon as it was sent."""
    granularity: int
    """Lost to whole blocks or pages, and to the last token, which is always computed."""
    in_flight: int
    """Lost as it was still being computed."""
    capacity: int | None
    """Lost as it had been evicted."""
    routing: int | None
    """Lost as it was held by another slot or replica than the one that answered."""
    expected: int
    measured: int | None
    """As the engine reported; None: it did not."""
    unexplained: int | None
    """expected - measured: below 0 where the engine found more."""

    @property
    def losses(self) -> dict[str, int]:
        """The steps from shareable to measured that are known."""
        return {name: loss for name in LOSSES if (loss := getattr(self, name)) is not None}


LOSSES = ("granularity", "in_flight", "capacity", "routing", "unexplained")
"""Fields of `Steps` that take away from what is shareable, in their order."""


@dataclass(frozen=True, slots=True)
class Part:
    """The steps of some of the requests, or of some of their tokens."""

    key: str | int | None
    """Kind of session, warmth, phase, number of the turn, number of the window, or level; None: belongs to no
    session."""
    steps: Steps


def summed(rows: pd.DataFrame, unknown: Mapping[str, str]) -> Steps:
    """Of rows with a column for each field of `Steps` but the first; what is `unknown` (step -> why) is None."""
    names = [field.name for field in fields(Steps) if field.name != "requests"]
    sums: dict[str, Any] = {name: None if name in unknown else int(rows[name].sum()) for name in names}
    return Steps(requests=len(rows), **sums)


def parts(rows: pd.DataFrame, column: str, unknown: Mapping[str, str]) -> tuple[Part, ...]:
    """By value of a column, in order."""
    if rows.empty:
        return ()
    return tuple(Part(plain(key), summed(some, unknown)) for key, some in rows.groupby(column, dropna=False, sort=True))


def plain(value: Any) -> Any:
    """A cell as JSON has it."""
    if pd.isna(value):
        return None
    return value if isinstance(value, str) else int(value)
