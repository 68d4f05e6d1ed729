"""Gates: what must not have got worse, such as `ttft_p99_ratio>1.1`, and whether it has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.compare.effect import Effect
from harness.compare.measures import FAILED, PAIRED, SHARES, TIMES
from harness.errors import InputError

EXAMPLE = "ttft_p99_ratio>1.1"
NAMES = (
    *(f"{time}_{share}_ratio" for time in TIMES for share in SHARES),
    *(f"{time}_paired_ratio" for time in PAIRED),
    "hit_rate_diff",
    "hit_rate_warm_diff",
    "failures_diff",
)
_GATE = re.compile(r"(?P<name>[a-z0-9_]+)(?P<sign>[<>])(?P<number>[+-]?(?:\d+(?:\.\d+)?|\.\d+))(?P<percent>%?)")

State = Literal["failed", "passed", "undecided", "unknown"]


@dataclass(frozen=True, slots=True)
class Gate:
    """Fails if the effect `name` is beyond `limit`: above it (>), or below it (<)."""

    text: str
    name: str
    is_above: bool
    limit: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A gate held against one side. It is failed or passed where the whole interval is on one side of the limit."""

    gate: str
    side: str
    state: State
    sentence: str


def parse_gates(texts: Sequence[str]) -> tuple[Gate, ...]:
    """Each text may hold several with commas between them. Raises InputError if one cannot be read."""
    parts = [re.sub(r"\s", "", part) for text in texts for part in text.split(",")]
    return tuple(_gate(part) for part in parts)


def _gate(part: str) -> Gate:
    found = _GATE.fullmatch(part)
    if found is None:
        raise InputError(f"--fail-if is {part!r}: expected NAME>NUMBER or NAME<NUMBER, such as {EXAMPLE}")
    if found["name"] not in NAMES:
        raise InputError(f"--fail-if is {part!r}: there is no {found['name']}; {_names()}")
    limit = float(found["number"]) / (100 if found["percent"] else 1)
    if found["name"].endswith("_ratio"):
        if limit <= 0:
            raise InputError(f"--fail-if is {part!r}: a ratio is above 0, and 1 means that nothing changed")
        if found["percent"]:
            raise InputError(f"--fail-if is {part!r}: a ratio takes no %: 1 is no change, and 1.1 is 10 % more")
    elif abs(limit) >= 1:
        raise InputError(
            f"--fail-if is {part!r}: shares differ by less than 1; percentage points have a %, as in hit_rate_diff<-2%"
        )
    return Gate(part, found["name"], found["sign"] == ">", limit)


def _names() -> str:
    """All of `NAMES` in a sentence."""
    shares = ", ".join(f"_{share}_ratio" for share in SHARES)
    others = ", ".join(name for name in NAMES if name.endswith("_diff"))
    return f"there are {', '.join(TIMES)}, each with {shares}; {', '.join(PAIRED)} with _paired_ratio; and {others}"


def judge(gate: Gate, side: str, effects: Sequence[Effect]) -> Judged:
    """By the interval and not by the point: a limit that chance alone goes beyond would fail every second change.

    Where requests failed, times are taken with each of them as infinitely slow: no gate is passed by failing.
    """
    by_name = {effect.name: effect for effect in effects}
    if gate.name not in by_name:
        return Judged(gate.text, side, "unknown", f"{gate.text}: UNKNOWN. The sides did not send the same requests.")
    effect = by_name.get(gate.name + FAILED, by_name[gate.name])
    state = _state(gate, effect)
    found = "is not known" if effect.effect is None else f"is {_number(effect, effect.effect)}"
    if effect.low is not None and effect.high is not None:
        found += f" ({_number(effect, effect.low)} to {_number(effect, effect.high)})"
    why = {
        "failed": "",
        "passed": "",
        "undecided": ": the interval holds the limit, more sessions would decide it",
        "unknown": f": {effect.reason}",
    }
    return Judged(gate.text, side, state, f"{gate.text}: {state.upper()}. {effect.name} {found}{why[state]}.")


def _state(gate: Gate, effect: Effect) -> State:
    if effect.low is None or effect.high is None:
        return "unknown"
    if gate.is_above:
        return "failed" if effect.low > gate.limit else "passed" if effect.high <= gate.limit else "undecided"
    return "failed" if effect.high < gate.limit else "passed" if effect.low >= gate.limit else "undecided"


def _number(effect: Effect, value: float) -> str:
    return f"{100 * value:+.2f} pp" if effect.kind == "difference" else f"{value:.3f}"


def fails(judged: Sequence[Judged], *, strict: bool) -> bool:
    """Whether a gate failed. One whose number is not known guards nothing, so it fails; `strict`: undecided ones do."""
    return any(one.state in ("failed", "unknown") or (strict and one.state == "undecided") for one in judged)
