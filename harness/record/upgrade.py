"""run.json of earlier format versions, turned into that of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OF_THE_TARGET = ("target", "identity", "hit_counters", "lexicon", "cold_start")
"""Keys of version 1 that version 2 has once for each target."""


def from_version_1(content: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 knew one target, and called it by its URL in both tables.

    Raises KeyError, TypeError or AttributeError if `content` is not of that version.
    """
    name = content["target"]["url"]
    target = {
        "name": name,
        "target": content["target"],
        "identity": _identity(content["identity"]),
        "metrics": _metrics(content["hit_counters"]),
        "advice": {},
        "lexicon": content["lexicon"],
        "cold_start": content["cold_start"],
    }
    rest = {key: value for key, value in content.items() if key not in _OF_THE_TARGET}
    phases = [{**phase, "targets": [name]} for phase in content["phases"]]
    return {**rest, "format_version": 2, "targets": [target], "phases": phases}


def _identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 put among the details why a field is null."""
    details = identity.get("details", {})
    unknown = {key: why for key, why in details.items() if key in identity and identity[key] is None}
    told = {key: value for key, value in details.items() if key not in unknown}
    return {**identity, "details": told, "unknown": unknown}


def _metrics(hit_counters: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    if hit_counters is None:
        return []
    if hit_counters["prompt_includes_cached"]:
        prompt, counts = "prompt_tokens", "prompt tokens, with those from the cache"
    else:
        prompt, counts = "computed_prompt_tokens", "prompt tokens computed, without those from the cache"
    return [
        _counter("cached_prompt_tokens", hit_counters["cached"], "prompt tokens taken from the cache"),
        _counter(prompt, hit_counters["prompt"], counts),
    ]


def _counter(meaning: str, names: list[str], counts: str) -> dict[str, Any]:
    return {"meaning": meaning, "names": names, "kind": "counter", "counts": counts}
