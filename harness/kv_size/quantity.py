"""Numbers as people write them: 32768, 24GB, 1.5GiB, 8B."""

from __future__ import annotations

import re
from fractions import Fraction

from harness.errors import InputError

BYTE_UNITS = {
    "": 1,
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("KMGT", start=1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", start=1)},
}
PARAMETER_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def whole(flag: str, text: str) -> int:
    """A whole number, 1 or more; commas and underscores may part its digits. Raises InputError."""
    digits = text.replace(",", "").replace("_", "")
    if re.fullmatch(r"[0-9]+", digits) and int(digits) > 0:
        return int(digits)
    raise InputError(f"{flag} {text} is not a whole number, 1 or more: give one such as 32768.")


def size_in_bytes(flag: str, text: str) -> int:
    """`24GB` (10^9) or `24GiB` (2^30). Raises InputError."""
    return _with_unit(flag, text, BYTE_UNITS, "16GB (10^9 bytes) or 16GiB (2^30)")


def parameters(flag: str, text: str) -> int:
    """`8B`, `600M`. Raises InputError."""
    return _with_unit(flag, text, PARAMETER_UNITS, "8B, 600M or 8190735360")


def share(flag: str, text: str) -> Fraction:
    """A share above 0, up to 1. Raises InputError."""
    if re.fullmatch(r"[0-9]*\.?[0-9]+", text) and 0 < Fraction(text) <= 1:
        return Fraction(text)
    raise InputError(f"{flag} {text} is not a share above 0 and up to 1: give one such as 0.9.")


def _with_unit(flag: str, text: str, units: dict[str, int], examples: str) -> int:
    found = _NUMBER.fullmatch(text.strip())
    names = {name.lower(): factor for name, factor in units.items()}
    if found and found[2].lower() in names:
        value = int(Fraction(found[1]) * names[found[2].lower()])
        if value > 0:
            return value
    raise InputError(f"{flag} {text} is not a size: give one such as {examples}.")
