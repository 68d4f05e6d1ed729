"""What an objective says, such as `ttft_p99<500ms,tpot_p99<50ms,failures<1%`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from harness.errors import InputError

Measure = Literal["ttft", "ttft_due", "tpot", "e2e", "failures"]
TIMES = ("ttft", "ttft_due", "tpot", "e2e")
EXAMPLE = "ttft_p99<500ms,tpot_p99<50ms,failures<1%"
_TIME = re.compile(r"(?P<name>[a-z0-9_]+)_p(?P<percent>\d+(?:\.\d+)?)<(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s)")
_FAILURES = re.compile(r"failures<(?P<number>\d+(?:\.\d+)?)%")
_MS = {"ms": 1.0, "s": 1000.0}


@dataclass(frozen=True, slots=True)
class Limit:
    """One condition. A request is beyond it or not, and fewer than `allowed` of them may be."""

    text: str
    """As it was given, without spaces."""
    measure: Measure
    limit_ms: float | None
    """A request that takes so long, or longer, is beyond it, as is one that failed; None: only failing counts."""
    allowed: float
    """Share of the requests, above 0 and below 1: p99 allows 0.01."""


def parse_slo(text: str) -> tuple[Limit, ...]:
    """The limits, in their order. Raises InputError if one cannot be read, or stands there twice."""
    parts = [re.sub(r"\s", "", part) for part in text.split(",")]
    if not any(parts):
        raise InputError(f"--slo is {text!r}: say what has to hold, such as {EXAMPLE}")
    limits = tuple(_limit(part, text) for part in parts)
    seen: set[tuple[str, float | None]] = set()
    for limit in limits:
        what = (limit.measure, None if limit.limit_ms is None else limit.allowed)
        if what in seen:
            raise InputError(f"--slo is {text!r}: {limit.text.partition('<')[0]} stands there twice")
        seen.add(what)
    return limits


def _limit(part: str, text: str) -> Limit:
    if found := _FAILURES.fullmatch(part):
        share = float(found["number"]) / 100
        if not 0 < share < 1:
            raise InputError(f"--slo is {text!r}: {part!r} must allow more than 0% and less than 100% of the requests")
        return Limit(part, "failures", None, share)
    found = _TIME.fullmatch(part)
    if found is None:
        raise InputError(
            f"--slo is {text!r}, and {part!r} in it cannot be read: expected name_pQUANTILE<NUMBERms (or s), or "
            f"failures<NUMBER%, such as {EXAMPLE}"
        )
    if found["name"] not in TIMES:
        raise InputError(f"--slo is {text!r}: there is no time {found['name']!r}; choose one of {', '.join(TIMES)}")
    percent, limit_ms = float(found["percent"]), float(found["number"]) * _MS[found["unit"]]
    if not 0 < percent < 100:
        raise InputError(f"--slo is {text!r}: p{found['percent']} in {part!r} must be above 0 and below 100")
    if limit_ms <= 0:
        raise InputError(f"--slo is {text!r}: no request is faster than {found['number']}{found['unit']} in {part!r}")
    # 1 - 0.99 is not quite 0.01.
    return Limit(part, found["name"], limit_ms, round((100 - percent) / 100, 12))  # type: ignore[arg-type]
