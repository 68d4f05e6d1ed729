"""How many sessions a second are to arrive, over the time of a load: one number, or a list of stages."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from harness.errors import InputError

FORMS = (
    "a number such as 2, or stages such as 30s:2, 1m:2-20, 20 (length:rate or length:from-to, the last one for ever)"
)
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_STAGE = re.compile(rf"(?:(?P<length>(?:\d+(?:\.\d+)?[smh])+):)?{_NUMBER}(?:-{_NUMBER})?")
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)([smh])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Stage:
    """A time of which the rate is the same throughout, or changes evenly."""

    length_s: float
    """math.inf: it goes on until the load is stopped, and its rate does not change."""
    first: float
    """Sessions a second at its beginning."""
    last: float
    """Those at its end."""

    def count(self, passed_s: float) -> float:
        """How many sessions are due from its beginning to `passed_s` after it: the integral of the rate,
        first t + (last - first) t² / (2 length)."""
        return self.first * passed_s + (self.last - self.first) * passed_s * passed_s / (2 * self.length_s)

    def time_s(self, count: float) -> float:
        """When `count` are due, after its beginning: the root of the equation above, in the form that does not cancel,
        2 n / (first + sqrt(first² + 2 n (last - first) / length))."""
        slope = (self.last - self.first) / self.length_s
        root = math.sqrt(max(0.0, self.first * self.first + 2 * count * slope))
        return 2 * count / (self.first + root) if count else 0.0


@dataclass(frozen=True, slots=True)
class Rate:
    """The stages, one after the other; `str()` gives the text that it was read from."""

    stages: tuple[Stage, ...]
    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def length_s(self) -> float:
        """After so many seconds no session arrives any more; math.inf: arrivals go on until the load is stopped."""
        return sum(stage.length_s for stage in self.stages)

    def count(self, passed_s: float) -> float:
        """How many sessions are due in the first `passed_s` seconds of the load."""
        count = 0.0
        for stage in self.stages:
            within_s = min(passed_s, stage.length_s)
            count += stage.count(within_s)
            passed_s -= within_s
            if passed_s <= 0:
                break
        return count

    def time_s(self, count: float) -> float | None:
        """When `count` sessions are due, in seconds from the load's start: the inverse of `count`. None: never."""
        began_s = 0.0
        for stage in self.stages:
            within = stage.count(stage.length_s) if stage.length_s < math.inf else math.inf * stage.first
            if count < within:
                return began_s + stage.time_s(count)
            count -= within
            began_s += stage.length_s
        return None


def parse_rate(text: str) -> Rate:
    """Read `2`, or stages with commas between them: `30s:2, 1m:2-20, 20`.

    A stage is LENGTH:RATE, or LENGTH:FROM-TO for a rate that changes evenly; lengths are 90s, 5m, 1h or 1m30s. The last
    one may be a rate alone, which goes on until the load is stopped; if it has a length, no session arrives after it.
    Raises InputError.
    """
    given = [part.strip().replace(" ", "") for part in text.split(",")]
    stages = tuple(_stage(part, text, is_last=place == len(given)) for place, part in enumerate(given, start=1))
    if not any(stage.first or stage.last for stage in stages):
        raise InputError(f"rate is {text!r}: no session would ever arrive; give a rate above 0.")
    return Rate(stages, text.strip())


def _stage(part: str, text: str, is_last: bool) -> Stage:
    found = _STAGE.fullmatch(part)
    if found is None:
        raise InputError(f"rate is {text!r}, and {part!r} in it cannot be read: give {FORMS}.")
    length, first, last = found["length"], float(found[2]), float(found[3] or found[2])
    if length is None:
        if found[3] is not None or not is_last:
            raise InputError(f"rate is {text!r}: the stage {part!r} needs a length before it, such as 30s:{part}.")
        return Stage(math.inf, first, last)
    length_s = sum(float(number) * _SECONDS[unit] for number, unit in _LENGTH.findall(length))
    if length_s <= 0:
        raise InputError(f"rate is {text!r}: the stage {part!r} has no length.")
    return Stage(length_s, first, last)
