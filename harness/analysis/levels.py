"""The waterfall by level of the prompt: what each level of the sharing tree, and each other part, shared and lost.

What a request hits is a prefix of its prompt, after every step. So what a step takes away is an interval of the prompt,
which the borders of the levels cut into pieces; the pieces of all levels add up to the whole, signs included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.analysis.steps import LOSSES, Part, Steps

_Whole = npt.NDArray[np.int64]

_ENDLESS = 2**62
"""Room of the last segment: an engine may report more cached tokens than the plan has in the whole prompt."""


def by_level(rows: pd.DataFrame, unknown: Mapping[str, str]) -> tuple[Part, ...]:
    """The steps of each level, in the order in which levels stand in prompts, the template's before the tree's root.

    `rows` are those of the requests with their steps, `path_tokens` and `path_levels`; what is `unknown` (step -> why)
    is None. `Steps.requests` counts those that have the level. Empty if not all rows have levels, as in runs that did
    not record them.
    """
    if rows.empty or rows["path_levels"].isna().any():
        return ()
    segments = _Segments.of(rows)
    sums: dict[str, _Whole] = {"prompt_tokens": segments.within(_whole(rows["prompt_tokens"]))}
    hit = _whole(rows["shareable"])
    sums["shareable"] = segments.within(hit)
    for step in LOSSES:
        if step == "unexplained":
            sums["expected"] = segments.within(hit)
        if step not in unknown:
            left = hit - _whole(rows[step])
            sums[step] = segments.within(hit) - segments.within(left)
            hit = left
    if "measured" not in unknown:
        sums["measured"] = segments.within(hit)
    sums["requests"], order = segments.requests_and_order()
    return tuple(Part(segments.names[level], _steps(sums, level)) for level in order)


def _steps(sums: Mapping[str, _Whole], level: int) -> Steps:
    values: dict[str, Any] = {
        field.name: int(sums[field.name][level]) if field.name in sums else None for field in fields(Steps)
    }
    return Steps(**values)


@dataclass(frozen=True, slots=True)
class _Segments:
    """All segments of all prompts, prompt by prompt and from head to tail; arrays have the shape (segments,)."""

    names: list[str]
    """Of the levels, by number."""
    levels: _Whole
    requests: _Whole
    """Number of the request."""
    starts: _Whole
    """Tokens before it in its prompt."""
    room: _Whole
    """Its tokens; of the last one in a prompt, without end."""

    @classmethod
    def of(cls, rows: pd.DataFrame) -> _Segments:
        counts = np.array([len(lengths) for lengths in rows["path_tokens"]], dtype=np.int64)
        tokens = np.concatenate(rows["path_tokens"].tolist()).astype(np.int64)
        levels, names = pd.factorize(np.concatenate(rows["path_levels"].tolist()))
        requests = np.repeat(np.arange(len(counts)), counts)
        lasts = np.cumsum(counts) - 1
        ends = np.cumsum(tokens)
        starts = ends - tokens
        starts -= starts[lasts + 1 - counts][requests]
        tokens[lasts] = _ENDLESS
        return cls([str(name) for name in names], levels.astype(np.int64), requests, starts, tokens)

    def within(self, prefixes: _Whole) -> _Whole:
        """Shape (levels,): tokens of each level within the first so many of each request, summed. Below 2^53 exact."""
        tokens = np.clip(prefixes[self.requests] - self.starts, 0, self.room)
        return np.bincount(self.levels, tokens, len(self.names)).astype(np.int64)

    def requests_and_order(self) -> tuple[_Whole, list[int]]:
        """How many requests have each level, and the levels by where they begin in prompts, on average."""
        which, first_at = np.unique(self.requests * len(self.names) + self.levels, return_index=True)
        levels = which % len(self.names)
        requests = np.bincount(levels)
        begin = np.bincount(levels, self.starts[first_at]) / requests
        return requests.astype(np.int64), np.argsort(begin, kind="stable").tolist()


def _whole(column: pd.Series) -> _Whole:
    return column.to_numpy(dtype=np.int64)
