"""Some windows of a series that leave its level and come back to it: a disturbance, and no change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.analysis.steady_series import Series

Bools = npt.NDArray[np.bool_]

_PART_OF_DISTURBED = 20
"""A disturbance is no longer than this part of the windows."""
_MOST_DISTURBANCES = 3
_FAR = 5.0
"""Standard deviations that a disturbance must be off: windows are many."""
_DEVIATIONS = 1.4826
"""The standard deviation of normal values, over the median of how far they are off."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Some windows that are far from those around them, which are alike before and after."""

    at_s: float
    value: float
    """The one that is furthest off."""
    around: float
    """The median around it."""


def disturbances(series: Series, least: float) -> tuple[tuple[Disturbance, ...], Bools]:
    """Those of a series, and which windows are none, (windows,). Such a window is off the median of those around it by
    what matters, and by more than chance. What is off among the first belongs to the start, and what is off again and
    again to the series."""
    scale = series.scale
    reach = max(2, len(scale) // _PART_OF_DISTURBED)
    medians = np.array([np.median(scale[max(0, at - reach) : at + reach + 1]) for at in range(len(scale))])
    off = np.abs(scale - medians)
    is_off = off >= max(least, _FAR * _DEVIATIONS * float(np.median(off)))
    is_off[: 2 * reach] = False
    for at in np.flatnonzero(is_off[: -reach - 1]):
        before, after = scale[at - 2 * reach : at], scale[at + 1 : at + 2 * reach + 1]
        is_off[at] = abs(float(np.median(before) - np.median(after))) < off[at] / 2
    borders = np.flatnonzero(np.diff(np.concatenate([[False], is_off, [False]]).astype(np.int8)))
    if len(borders) > 2 * _MOST_DISTURBANCES:
        return (), np.ones(len(scale), dtype=bool)
    found = []
    for begin, end in zip(borders[::2], borders[1::2], strict=True):
        worst = begin + int(np.argmax(off[begin:end]))
        usual = float(np.median(series.values[max(0, worst - reach) : worst + reach + 1]))
        found.append(Disturbance(float(series.end_s[worst]), float(series.values[worst]), usual))
    return tuple(found), ~is_off
