"""Lengths, counts and pauses: a fixed number, or a distribution whose largest value is known beforehand."""

from __future__ import annotations

import json
import math
from hashlib import sha256
from random import Random
from statistics import NormalDist
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

_Whole = Annotated[int, Field(strict=True, ge=0)]
_Positive = Annotated[int, Field(strict=True, ge=1)]
_Seconds = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
_PositiveSeconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Uniform(_Part):
    """Whole numbers from a to b, both included, all equally likely."""

    uniform: tuple[_Positive, _Positive] = Field(description="[a, b]: smallest and largest value.")

    @model_validator(mode="after")
    def _in_order(self) -> Uniform:
        _check_order(*self.uniform)
        return self

    @property
    def max(self) -> int:
        return self.uniform[1]

    def draw(self, rng: Random) -> int:
        low, high = self.uniform
        return low + int(rng.random() * (high - low + 1))


class LogNormalShape(_Part):
    """A log-normal distribution, cut at both ends."""

    median: float = Field(gt=0, allow_inf_nan=False, description="Half of the values are smaller.")
    sigma: float = Field(gt=0, le=10, description="Standard deviation of the logarithm: 0.5 is narrow, 1 is wide.")
    min: _Positive = Field(default=1, description="Smaller values become this one.")
    max: _Positive = Field(description="Larger values become this one, so that the longest prompt is known.")

    @model_validator(mode="after")
    def _in_order(self) -> LogNormalShape:
        _check_order(self.min, self.max)
        return self


class LogNormal(_Part):
    """Whole numbers, many small and a few large ones."""

    lognormal: LogNormalShape

    @property
    def max(self) -> int:
        return self.lognormal.max

    def draw(self, rng: Random) -> int:
        shape = self.lognormal
        value = shape.median * math.exp(shape.sigma * _standard_normal(rng))
        return min(max(round(value), shape.min), shape.max)


class UniformSeconds(_Part):
    """Seconds between a and b, all equally likely."""

    uniform: tuple[_Seconds, _Seconds] = Field(description="[a, b]: shortest and longest pause, in seconds.")

    @model_validator(mode="after")
    def _in_order(self) -> UniformSeconds:
        _check_order(*self.uniform)
        return self

    @property
    def max(self) -> float:
        return self.uniform[1]

    def draw(self, rng: Random) -> float:
        low, high = self.uniform
        return low + rng.random() * (high - low)


class ExponentialShape(_Part):
    """An exponential distribution, cut at its upper end."""

    mean: _PositiveSeconds = Field(description="Mean in seconds, before the cut.")
    max: _PositiveSeconds = Field(description="Longer pauses become this one, in seconds.")


class Exponential(_Part):
    """Seconds, many short and a few long ones."""

    exponential: ExponentialShape

    @property
    def max(self) -> float:
        return self.exponential.max

    def draw(self, rng: Random) -> float:
        return min(-self.exponential.mean * math.log(1.0 - rng.random()), self.max)


def _check_order(low: float, high: float) -> None:
    if low > high:
        raise ValueError(f"the smallest value ({low}) must not be above the largest ({high})")


def _standard_normal(rng: Random) -> float:
    """By inversion, so that one draw takes one random number on every version of Python."""
    return NormalDist().inv_cdf(max(rng.random(), 2.0**-53))


def _form(value: Any) -> str | None:
    """Which branch of a union `value` belongs to, so that only that branch's error is reported."""
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, BaseModel):
        return next(iter(type(value).model_fields))
    if isinstance(value, dict) and len(value) == 1:
        return str(next(iter(value)))
    return None


_LENGTH_FORMS = Discriminator(
    _form,
    custom_error_type="length",
    custom_error_message="expected a whole number, {uniform: [a, b]} or "
    "{lognormal: {median: m, sigma: s, min: a, max: b}}",
)
_PAUSE_FORMS = Discriminator(
    _form,
    custom_error_type="pause",
    custom_error_message="expected seconds, {uniform: [a, b]} or {exponential: {mean: m, max: b}}",
)
_Uniform = Annotated[Uniform, Tag("uniform")]
_LogNormal = Annotated[LogNormal, Tag("lognormal")]

Length = Annotated[Annotated[_Positive, Tag("number")] | _Uniform | _LogNormal, _LENGTH_FORMS]
"""A number of tokens or things, at least 1."""

LengthOrNone = Annotated[Annotated[_Whole, Tag("number")] | _Uniform | _LogNormal, _LENGTH_FORMS]
"""The same, or the fixed number 0, which means: none at all."""

Pause = Annotated[
    Annotated[_Seconds, Tag("number")]
    | Annotated[UniformSeconds, Tag("uniform")]
    | Annotated[Exponential, Tag("exponential")],
    _PAUSE_FORMS,
]
"""A time in seconds."""


class Draws:
    """The values that one thing (a session, a document, ...) draws from the distributions of its scenario.

    Each purpose has a stream of its own, so a change to one distribution leaves what the others give as it was.
    The nonce of a run has no part in it: all runs of a scenario have the same lengths.
    """

    def __init__(self, seed: int, *thing: str | int) -> None:
        self._name = [seed, *thing]
        self._streams: dict[str, Random] = {}

    def stream(self, purpose: str) -> Random:
        """The random numbers of `purpose`, seeded with sha-256 over (seed, thing, purpose)."""
        if purpose not in self._streams:
            named = json.dumps([*self._name, purpose], separators=(",", ":")).encode("ascii")
            self._streams[purpose] = Random(int.from_bytes(sha256(named).digest(), "big"))
        return self._streams[purpose]

    def length(self, purpose: str, length: int | Uniform | LogNormal) -> int:
        """The next value of `length`."""
        return length if isinstance(length, int) else length.draw(self.stream(purpose))

    def pause_s(self, purpose: str, pause: float | UniformSeconds | Exponential) -> float:
        """The next value of `pause`."""
        return float(pause) if isinstance(pause, (int, float)) else pause.draw(self.stream(purpose))


class LongestDraws(Draws):
    """Draws the largest value each time: what the longest possible session is made of."""

    def __init__(self) -> None:
        super().__init__(0)

    def length(self, purpose: str, length: int | Uniform | LogNormal) -> int:
        return length if isinstance(length, int) else length.max

    def pause_s(self, purpose: str, pause: float | UniformSeconds | Exponential) -> float:
        return float(pause) if isinstance(pause, (int, float)) else pause.max
