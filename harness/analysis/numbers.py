"""How the reports write numbers: short enough for a column, and "-" for what is not known."""

from __future__ import annotations

import math

UNKNOWN = "-"


def milliseconds(value_ms: float | None) -> str:
    """Three digits below 100 ms, whole ones above, and seconds (with their unit) from 100 s on."""
    if value_ms is None:
        return UNKNOWN
    if math.isinf(value_ms):
        return "inf"
    if abs(value_ms) >= 99_999.5:
        return f"{value_ms / 1e3:,.0f} s"
    if abs(value_ms) < 10:
        return f"{value_ms:.2f}"
    return f"{value_ms:.1f}" if abs(value_ms) < 100 else f"{value_ms:,.0f}"


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


def percent(share: float | None) -> str:
    """Never rounded up to 100 % or down to 0 %: that would claim what is not so."""
    if share is None:
        return UNKNOWN
    if 0 < share < 0.001:
        return "<0.1 %"
    if 0.999 < share < 1:
        return ">99.9 %"
    return f"{share:.1%}".replace("%", " %")
