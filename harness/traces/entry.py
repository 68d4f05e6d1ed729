"""Checked values out of one JSON object of a trace."""

from __future__ import annotations

import math
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

Entry = dict[str, Any]


class BadEntry(Exception):
    """A line or a request cannot be used; the message says why, without the place."""


def check_keys(entry: object, required: Collection[str], optional: Collection[str] = ()) -> Entry:
    """`entry` as a mapping that has all of the required keys, and none but these and the optional ones."""
    if not isinstance(entry, dict):
        raise BadEntry(f"expected a JSON object, found {shown(entry)}")
    for key in required:
        if key not in entry:
            raise BadEntry(f"the key {key} is missing")
    for key in entry:
        if key not in required and key not in optional:
            known = sorted({*required, *optional})
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            raise BadEntry(f'unknown key "{key}"; {hint}')
    return entry


def whole(entry: Entry, key: str, least: int) -> int:
    """A whole number, `least` or more."""
    value = entry[key]
    if type(value) is not int or value < least:
        raise BadEntry(f"{key} is {shown(value)}; expected a whole number, {least} or more")
    return value


def seconds(entry: Entry, key: str, per_second: int = 1) -> float:
    """A time of 0 or later, given in parts of a second."""
    value = entry[key]
    if type(value) not in (int, float) or not math.isfinite(value) or value < 0:
        raise BadEntry(f"{key} is {shown(value)}; expected a number, 0 or more")
    return float(value) / per_second


def optional_seconds(entry: Entry, key: str, per_second: int = 1) -> float | None:
    """The same; None where the key is missing or null."""
    return None if entry.get(key) is None else seconds(entry, key, per_second)


def text(entry: Entry, key: str) -> str:
    value = entry[key]
    if not isinstance(value, str) or not value:
        raise BadEntry(f"{key} is {shown(value)}; expected a text")
    return value


def optional_text(entry: Entry, key: str) -> str | None:
    """None where the key is missing or null."""
    return None if entry.get(key) is None else text(entry, key)


def entries_of(entry: Entry, key: str) -> list[object]:
    """A list of whatever."""
    value = entry[key]
    if not isinstance(value, list):
        raise BadEntry(f"{key} is {shown(value)}; expected a list")
    return value


def hash_ids(entry: Entry) -> list[int]:
    """The ids of the prompt's blocks."""
    ids = []
    for one in entries_of(entry, "hash_ids"):
        if type(one) is not int:
            raise BadEntry(f"hash_ids holds {shown(one)}; expected whole numbers below 2^64")
        ids.append(one)
    return ids


def shown(value: object) -> str:
    """A value as a sentence can hold it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    short = str(value) if len(str(value)) <= 40 else f"{str(value)[:37]}..."
    return f'"{short}"' if isinstance(value, str) else short
