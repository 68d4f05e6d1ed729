"""How the reports write numbers: short enough for a column, and "-" for what is not known."""

from __future__ import annotations

import math
from collections.abc import Callable

UNKNOWN = "-"
_SECONDS_FROM_MS = 99_999.5
_MOST_MORE = 4
"""Digits: what differs in none of them is alike."""


def milliseconds(value_ms: float | None, more: int = 0) -> str:
    """Three digits below 100 ms, whole ones above, and seconds (with their unit) from 100 s on; and `more` digits.

    Never rounded down to 0.
    """
    if value_ms is None:
        return UNKNOWN
    if math.isinf(value_ms):
        return "inf"
    if abs(value_ms) >= _SECONDS_FROM_MS:
        return f"{value_ms / 1e3:,.{more}f} s"
    least = 10 ** -(2 + more)
    if 0 < value_ms < least / 2:
        return f"<{least:.{2 + more}f}"
    digits = 2 if abs(value_ms) < 10 else 1 if abs(value_ms) < 100 else 0
    return f"{value_ms:,.{digits + more}f}"


def with_unit(value_ms: float | None, more: int = 0) -> str:
    """As `milliseconds`, with the unit of each."""
    text = milliseconds(value_ms, more)
    is_bare = value_ms is not None and abs(value_ms) < _SECONDS_FROM_MS
    return f"{text} ms" if is_bare else text


def between(low: float, high: float, shown: Callable[[float, int], str], word: str = "to") -> str:
    """An interval, with as many more digits as it takes to tell its ends apart; `shown` writes a value with so many."""
    more = next((more for more in range(_MOST_MORE + 1) if shown(low, more) != shown(high, more)), 0)
    one, other = shown(low, more), shown(high, more)
    return f"{one.removesuffix(' ms') if other.endswith(' ms') else one} {word} {other}"


def count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def tokens(value: int | None) -> str:
    """Exact below 100 million, in millions from there on."""
    return f"{value / 1e6:,.1f} M" if value is not None and value >= 100_000_000 else count(value)


def short_tokens(value: int | None) -> str:
    """For tables of many columns: exact below a million, in thousands (k) or millions (M) from there on."""
    if value is None or abs(value) < 1_000_000:
        return count(value)
    return f"{value / 1e3:,.0f} k" if abs(value) < 10_000_000 else f"{value / 1e6:,.1f} M"


def whole_percent(share: float | None) -> str:
    """Rounded down, so that 100 % means all."""
    return UNKNOWN if share is None else f"{math.floor(100 * share)} %"


def percent(share: float | None, more: int = 0) -> str:
    """Never rounded up to 100 % or down to 0 %: that would claim what is not so. With `more` digits."""
    if share is None:
        return UNKNOWN
    least = 10 ** -(3 + more)
    if 0 < share < least:
        return f"<{least:.{1 + more}%}".replace("%", " %")
    if 1 - least < share < 1:
        return f">{1 - least:.{1 + more}%}".replace("%", " %")
    return f"{share:.{1 + more}%}".replace("%", " %")
