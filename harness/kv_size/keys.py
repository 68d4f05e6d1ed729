"""Checked values out of the metadata of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.errors import InputError

MOST_LAYERS = 10_000
"""More than any model has: a file that says so is not what it seems."""


class Keys:
    """The metadata, and the place it is from, for sentences. A key that is null is taken as missing."""

    def __init__(self, place: str, values: Mapping[str, Any]) -> None:
        self.place = place
        self._values = {key: value for key, value in values.items() if value is not None}

    def with_defaults(self, defaults: Mapping[str, Any]) -> Keys:
        """The same, with these values for keys that are missing or null."""
        return Keys(self.place, {**defaults, **self._values})

    def get(self, *names: str) -> Any:
        """The value of the first of these keys that is there, unchecked; None if none is."""
        return next((self._values[name] for name in names if name in self._values), None)

    def has(self, *names: str) -> bool:
        """Whether one of these keys is there."""
        return any(name in self._values for name in names)

    def beginning(self, starts: tuple[str, ...]) -> str | None:
        """The first key whose name begins with one of these; None if there is none."""
        return next((name for name in self._values if name.startswith(starts)), None)

    def whole(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """A whole number, `least` or more; `default` if none of these keys is there. Raises InputError."""
        for name in names:
            if name in self._values:
                return self._checked(name, self._values[name], least)
        if default is not None:
            return default
        others = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
        raise InputError(
            f"{self.place}: the key {names[0]}{others} is missing, so the KV cache cannot be told from it."
        )

    def optional(self, *names: str) -> int | None:
        """A whole number, 1 or more; None if none of these keys is there, or if it is 0. Raises InputError."""
        return self.whole(*names, default=0, least=0) or None

    def each(self, layers: int, *names: str, default: int | None = None) -> list[int]:
        """A whole number, 0 or more, for each layer; one alone is that of all. Raises InputError."""
        for name in names:
            value = self._values.get(name)
            if isinstance(value, list):
                self.check_length(name, value, layers)
                return [self._checked(name, one, 0) for one in value]
        return [self.whole(*names, default=default, least=0)] * layers

    def layers(self, *names: str) -> int:
        """How many layers there are. Raises InputError."""
        found = self.whole(*names)
        if found > MOST_LAYERS:
            raise InputError(f"{self.place}: {found:,} layers are more than any model has.")
        return found

    def names(self, name: str, layers: int) -> list[str]:
        """A list of texts, one for each layer. Raises InputError."""
        value = self._values[name]
        if not isinstance(value, list | str) or not all(isinstance(one, str) for one in value):
            raise InputError(f"{self.place}: {name} is {shown(value)}; expected a text for each layer.")
        self.check_length(name, value, layers)
        return list(value)

    def numbers(self, name: str) -> list[int]:
        """A list of whole numbers, 0 or more. Raises InputError."""
        value = self._values.get(name)
        if not isinstance(value, list):
            raise InputError(f"{self.place}: {name} is {shown(value)}; expected a list of whole numbers.")
        return [self._checked(name, one, 0) for one in value]

    def below(self, name: str) -> Keys:
        """The object at a key. Raises InputError if it is none."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise InputError(f"{self.place}: {name} is {shown(value)}; expected an object.")
        return Keys(f"{self.place}, {name}", value)

    def check_length(self, name: str, value: list[Any] | str, layers: int) -> None:
        """Raise InputError if there is not one for each layer."""
        if len(value) != layers:
            raise InputError(f"{self.place}: {name} has {len(value)} entries for {layers} layers.")

    def _checked(self, name: str, value: Any, least: int) -> int:
        if type(value) is not int or value < least:
            raise InputError(f"{self.place}: {name} is {shown(value)}; expected a whole number, {least} or more.")
        return value


def shown(value: object) -> str:
    """A value in a sentence, not longer than fits there."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
