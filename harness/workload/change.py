"""Another scenario out of one: some keys with other values, as `--set` and a sweep give them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from harness.errors import ScenarioError
from harness.workload.scenario import Replay, Scenario, scenario_from
from harness.yamlfile import sentence


def changed(scenario: Scenario, text: str) -> Scenario:
    """`scenario` with the changes of `text`: `key=value`, several with `;` between them: `fault.rate=0.5; seed=2`.

    A value is read as in a scenario file, but the paths of a replay count from the current folder; a dot leads into a
    mapping. Another trace or tokenizer has another fingerprint: its own, if none is given.

    Raises ScenarioError if a key or value is wrong, InputError if another trace cannot be played.
    """
    if not text.strip():
        return scenario
    plain = scenario.model_dump(mode="json", exclude_unset=True)
    parts = list(_parts(text))
    if any(key in ("trace", "tokenizer") for key, _ in parts):
        plain.pop("fingerprint", None)
    for key, value in parts:
        _put(plain, key, value, text)
    try:
        made = scenario_from(plain)
        return made.located(Path.cwd(), f"set {text!r}") if isinstance(made, Replay) else made
    except ValidationError as invalid:
        error = invalid.errors()[0]
        where = ".".join(str(part) for part in error["loc"] if part != scenario.kind)
        raise ScenarioError(f"set {text!r}, key {where}: {sentence(error)}") from None


def _parts(text: str) -> Iterator[tuple[str, Any]]:
    for part in filter(None, map(str.strip, text.split(";"))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ScenarioError(f"set {part!r}: expected key=value, such as pressure=2")
        try:
            yield key.strip(), yaml.safe_load(value)
        except yaml.YAMLError:
            raise ScenarioError(f"set {part!r}: the value is not what a scenario file could have (YAML)") from None


def _put(plain: dict[str, Any], key: str, value: Any, text: str) -> None:
    *way, last = key.split(".")
    place: Any = plain
    for name in way:
        place = place.setdefault(name, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise ScenarioError(f"set {text!r}: {'.'.join(way)} is no mapping that could have a key {last}")
    place[last] = value
