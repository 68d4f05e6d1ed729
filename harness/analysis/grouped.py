"""Numbers of many requests, group by group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.analysis.columns import stretches
from harness.analysis.latency import quantiles

Groups = npt.NDArray[np.int8]
"""Shape (rows,): the number of each row's group, below 0 for none."""
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64] | npt.NDArray[np.float32]


def sums(groups: Groups, values: Ints, count: int) -> Ints:
    """Shape (count,): of each group."""
    has = groups >= 0
    return np.bincount(groups[has], values[has], count).astype(np.int64)


def counts(groups: Groups, count: int) -> Ints:
    """Shape (count,): the rows of each group."""
    return np.bincount(groups[groups >= 0], minlength=count)


def quantiles_of(groups: Groups, values: Floats, shares: Sequence[float]) -> dict[int, tuple[int, list[float]]]:
    """Group -> (its values, the quantiles at `shares`, exact as those of `harness.analysis.latency`).

    A nan is no value; groups without any are left out.
    """
    by_group, ends = _sorted(groups, values)
    lengths = np.diff(ends, prepend=0).tolist()
    return {
        group: (n, quantiles(by_group[end - n : end], shares))
        for group, (n, end) in enumerate(zip(lengths, ends.tolist(), strict=True))
        if n
    }


def _sorted(groups: Groups, values: Floats) -> tuple[Floats, Ints]:
    """The values that are known, group after group, and where in them each group ends."""
    most = int(groups.max(initial=-1)) + 1
    lengths = np.zeros(most, dtype=np.int64)
    for part in stretches(len(groups)):
        lengths += counts(np.where(np.isnan(values[part]), np.int8(-1), groups[part]), most)
    ends = np.cumsum(lengths)
    places, by_group = ends - lengths, np.empty(int(lengths.sum()), values.dtype)
    for part in stretches(len(groups)):
        known = (groups[part] >= 0) & ~np.isnan(values[part])
        own, some = groups[part][known], values[part][known]
        some = some[np.argsort(own, kind="stable")]
        start = 0
        for group, n in enumerate(counts(own, most).tolist()):
            by_group[places[group] : places[group] + n] = some[start : start + n]
            places[group] += n
            start += n
    return by_group, ends


def first_and_last(names: Ints, first: Groups, last: Groups) -> tuple[Ints, Groups, Groups]:
    """Of rows that belong to the same name, the smallest `first` and the largest `last`; shapes (rows,).

    The names, each once, and what was found of each; shapes (names,).
    """
    codes, each = pd.factorize(names)
    least, most = np.full(len(each), np.iinfo(np.int8).max, np.int8), np.full(len(each), np.iinfo(np.int8).min, np.int8)
    np.minimum.at(least, codes, first)
    np.maximum.at(most, codes, last)
    return each, least, most
