"""What tells several runs of one scenario apart: the keys that were set to other values, as a sweep does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.record.manifest import Manifest

_LOAD = ("load", "users", "rate", "arrivals")
"""What is set beside the keys of the scenario."""
_AS_WRITTEN = "as the scenario has it"


@dataclass(frozen=True, slots=True)
class Swept:
    """Of several runs."""

    keys: tuple[str, ...]
    """Whose values are not the same in all of them."""
    values: tuple[tuple[str, ...], ...]
    """Of each run, one for each key."""

    @property
    def is_one_key(self) -> bool:
        return len(self.keys) == 1

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The values of the only key; None: there are several, or a value is no number."""
        try:
            return tuple(float(value) for (value,) in self.values)
        except ValueError:
            return None


def swept(manifests: Sequence[Manifest]) -> Swept | None:
    """None: they are of several scenarios, or nothing that can be set differs.

    Parts of one mapping, such as fault.kind and fault.rate, count as one key.
    """
    if len({one.scenario_name for one in manifests}) != 1:
        return None
    settings = [_settings(one) for one in manifests]
    names = dict.fromkeys(name for one in settings for name in one)
    roots: dict[str, list[str]] = {}
    for name in names:
        if len({_value(one, manifest, name) for one, manifest in zip(settings, manifests, strict=True)}) > 1:
            roots.setdefault(name.partition(".")[0], []).append(name)
    values = [
        tuple(_together(one, manifest, parts) for parts in roots.values())
        for one, manifest in zip(settings, manifests, strict=True)
    ]
    keys = tuple(parts[0] if len(parts) == 1 else root for root, parts in roots.items())
    return Swept(keys, tuple(values)) if keys else None


def _settings(manifest: Manifest) -> dict[str, str]:
    """What the run was told, key by key."""
    options, scenario = manifest.options, manifest.scenario
    told = {} if scenario.get("pressure") is None else {"pressure": _plain(scenario["pressure"])}
    for change in filter(None, str(options.get("changes") or "").split(";")):
        key, _, value = change.partition("=")
        told[key.strip()] = _plain(value.strip())
    for name in _LOAD:
        # As many users as the scenario has running sessions follow from it.
        follows = name == "users" and options.get(name) == scenario.get("running_sessions")
        if options.get(name) is not None and not follows:
            told[name] = _plain(options[name])
    return told


def _value(told: Mapping[str, str], manifest: Manifest, name: str) -> str:
    if name in told:
        return told[name]
    place: Any = manifest.options if name in _LOAD else manifest.scenario
    for part in name.split("."):
        place = place.get(part) if isinstance(place, Mapping) else None
    return _AS_WRITTEN if place is None or isinstance(place, Mapping | list) else _plain(place)


def _together(told: Mapping[str, str], manifest: Manifest, parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return _value(told, manifest, parts[0])
    return ", ".join(told[part] for part in parts if part in told) or _AS_WRITTEN


def _plain(value: Any) -> str:
    """Numbers in one way, however they were written; null as the word none."""
    text = str(value).strip()
    try:
        return f"{float(text):g}"
    except ValueError:
        return "none" if text in ("null", "None", "~", "") else text
