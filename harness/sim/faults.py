"""Faults of a simulated engine: what goes wrong, and how often."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from harness.errors import InputError

Scope = Literal["answers", "metrics", "all", "start", "process"]
"""What a fault hits: requests that generate, the metrics page, every request, the time after the start, the process."""


@dataclass(frozen=True, slots=True)
class Kind:
    hits: Scope
    value: float | None
    """What is taken where no value is given; None: it takes none."""
    least: float = 0.0


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "loading": Kind("start", 5.0),
        "unreachable": Kind("start", 5.0),
        "restart": Kind("process", 5.0),
        "stall": Kind("answers", 5.0),
        "reset": Kind("answers", 3.0),
        "error-event": Kind("answers", 3.0),
        "truncated-json": Kind("answers", 3.0),
        "no-done": Kind("answers", None),
        "no-usage": Kind("answers", None),
        "tokens-per-chunk": Kind("answers", 4.0, least=1.0),
        "role-first": Kind("answers", None),
        "no-role-first": Kind("answers", None),
        "429": Kind("answers", 1.0),
        "503": Kind("answers", 1.0),
        "slow-metrics": Kind("metrics", 5.0),
        "broken-metrics": Kind("metrics", None),
        "clock-skew": Kind("all", 3600.0, least=-1e9),
    }
)
"""docs/simulator.md says what each of them does, and what its value is."""


@dataclass(frozen=True, slots=True)
class Fault:
    kind: str
    value: float
    share: float = 1.0
    """Of the requests that it can hit."""


def parse(text: str) -> Fault:
    """The fault that `kind`, `kind:value` or `kind:value@share` means. Raises InputError if it means none."""
    match = re.fullmatch(r"\s*([a-z0-9-]+)(?::(-?\d+\.?\d*))?(?:@(\d*\.?\d+))?\s*", text)
    if match is None:
        raise InputError(f"The fault {text!r} is not kind, kind:value or kind:value@share, such as stall:5@0.1.")
    name, value, share = match.groups()
    kind = KINDS.get(name)
    if kind is None:
        raise InputError(f"There is no fault {name!r}: choose one of {', '.join(KINDS)}.")
    if value is not None and (kind.value is None or float(value) < kind.least):
        wanted = "takes no value" if kind.value is None else f"needs a value of {kind.least:g} or more"
        raise InputError(f"The fault {text!r} cannot be: {name} {wanted}.")
    if share is not None and (kind.hits in ("start", "process") or not 0 < float(share) <= 1):
        wanted = "is not one of requests" if kind.hits in ("start", "process") else "needs a share above 0, at most 1"
        raise InputError(f"The fault {text!r} cannot be: {name} {wanted}.")
    return Fault(name, float(value or kind.value or 0), float(share or 1))
