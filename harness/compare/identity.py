"""What tells two sides apart: who answered, under which load, asked what; and which of it changes the meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from harness.compare.sides import Member, Side
from harness.errors import InputError

MEANING = ("model", "tokenizer_fingerprint", "template_fingerprint", "kv_dtype", "adapter")
"""Fields of the identity that must be equal: else other tokens are counted, or another model computes them."""
LOAD = ("load", "rate", "arrivals", "users", "spawn_rate", "stagger", "warm_up_s", "together")
"""Options that make up the load."""
OVERRIDES = (*MEANING, "workload", "load")
"""What --allow takes."""
_SHOWN = (
    "engine", "version", "build", "model", "model_path", "adapter", "kv_dtype", "tokenizer_fingerprint",
    "template_fingerprint", "prefix_caching", "granularity_tokens", "capacity_tokens", "context_tokens", "slots",
)  # fmt: skip
_UNTOLD = ("-",)
_VAGUE = {"kv_dtype": ("-", "auto")}
"""Field -> what says as little as nothing: the type of the model, which may be another one."""
_NO_EFFECT = ("name", "description")
"""Keys of a scenario that change nothing of what is sent."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same for all runs."""

    what: str
    values: tuple[str, ...]
    """By side; of a side whose runs differ all of them."""
    override: str | None
    """What --allow must name before the sides may be compared; None: it may differ."""
    unknown: bool
    """It is not known of all, so they may differ or not."""


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of something that is told of a member."""

    of: Callable[[Member], Mapping[str, Any]]
    name: str

    def __call__(self, member: Member) -> Any:
        return self.of(member).get(self.name)


def differences(sides: Sequence[Side]) -> list[Difference]:
    """All that is known to differ; of the fields in `MEANING` also what may, as a side does not tell."""
    found: list[Difference] = []

    def look(what: str, value: Callable[[Member], Any], override: str | None) -> None:
        by_side = [list(dict.fromkeys(_text(value(member)) for member in side.members)) for side in sides]
        vague = _VAGUE.get(what, _UNTOLD)
        known = {text for texts in by_side for text in texts if text not in vague}
        untold = any(text in vague for texts in by_side for text in texts)
        if len(known) > 1 or (untold and known):
            may_differ = len(known) == 1 and override in MEANING
            values = tuple(", ".join(texts) for texts in by_side)
            found.append(Difference(what, values, None if may_differ else override, may_differ))

    for name in _SHOWN:
        look(name, _Key(_identity, name), name if name in MEANING else None)
    for name in _keys(sides, _details):
        look(name, _Key(_details, name), None)
    look("cold start", lambda member: member.target.cold_start, None)
    look("kvswarm", lambda member: member.run.manifest.kvswarm_version, None)
    for name in LOAD:
        look(f"load: {name}", _Key(lambda member: member.run.manifest.options, name), "load")
    for name in _keys(sides, _scenario):
        look(f"scenario: {name}", _Key(_scenario, name), "workload")
    return found


def check(found: Sequence[Difference], allowed: Sequence[str]) -> None:
    """Raises InputError if something that changes the meaning differs and was not allowed, or --allow names nothing."""
    for name in allowed:
        if name not in OVERRIDES:
            raise InputError(f"--allow takes no {name!r}; choose one of {', '.join(OVERRIDES)}.")
    forbidden = [one for one in found if one.override is not None and one.override not in allowed]
    if forbidden:
        told = "; ".join(f"{one.what} is {_by_side(one.values)}" for one in forbidden)
        flags = " ".join(dict.fromkeys(f"--allow {one.override}" for one in forbidden))
        raise InputError(f"These runs do not mean the same: {told}; to compare them all the same, add {flags}")


def _by_side(values: Sequence[str]) -> str:
    """Of more than two the letters are needed to tell which is which."""
    if len(values) == 2:
        return " against ".join(values)
    return ", ".join(f"{value} in {side}" for side, value in zip(ascii_uppercase, values, strict=False))


def _keys(sides: Sequence[Side], of: Callable[[Member], Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for side in sides for member in side.members for key in of(member)))


def _identity(member: Member) -> Mapping[str, Any]:
    """No adapter is told by its absence, where other fields are not known then."""
    told = {name: value for name, value in member.target.identity.items() if value is not None}
    return {"adapter": "none"} | told


def _details(member: Member) -> Mapping[str, Any]:
    details: Mapping[str, Any] = member.target.identity.get("details") or {}
    return details


def _scenario(member: Member) -> Mapping[str, Any]:
    return {key: value for key, value in member.run.manifest.scenario.items() if key not in _NO_EFFECT}


def _text(value: Any) -> str:
    return "-" if value is None else str(value)
