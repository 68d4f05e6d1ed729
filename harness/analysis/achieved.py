"""Sharing and pressure as they came out, beside what the scenario asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.expected_engines import kv_capacity, why_no_capacity
from harness.analysis.numbers import count, percent
from harness.analysis.steps import Steps
from harness.analysis.working_set import InUse
from harness.record.manifest import TargetRecord


@dataclass(frozen=True, slots=True)
class Achieved:
    """Of one target. None: not known, or not asked for."""

    sharing: float | None
    """Shareable / prompt tokens of the waterfall."""
    sharing_asked: float | None
    """None also where the scenario gives the levels themselves."""
    working_set_tokens: int | None
    """The largest of all windows."""
    capacity_tokens: int | None
    """Of all replicas together; where the target does not tell it, the scenario's."""
    capacity_unknown: str | None
    """Why `capacity_tokens` is None."""
    pressure: float | None
    """working_set_tokens / capacity_tokens."""
    pressure_asked: float | None
    pressure_asked_of_tokens: int | None
    """The capacity that `pressure_asked` is a multiple of: with several targets, the least."""

    def sentences(self) -> Iterator[str]:
        """In words, as far as it is known."""
        if self.sharing is not None:
            asked = "" if self.sharing_asked is None else f" (asked for: {percent(self.sharing_asked)})"
            yield f"Sharing achieved: {percent(self.sharing)} of all prompt tokens{asked}"
        if self.working_set_tokens is None:
            return
        working_set = f"{count(self.working_set_tokens)} tokens"
        if self.pressure is None:
            yield f"Largest working set: {working_set}; pressure is not known, as {self.capacity_unknown}"
            return
        capacity = f"{count(self.capacity_tokens)} tokens of KV capacity"
        yield f"Pressure achieved: {self.pressure:.3g}, {working_set} of working set on {capacity}{self._asked()}"

    def _asked(self) -> str:
        if self.pressure_asked is None:
            return ""
        elsewhere = self.pressure_asked_of_tokens != self.capacity_tokens
        of_tokens = f" on {count(self.pressure_asked_of_tokens)} tokens" if elsewhere else ""
        return f" (asked for: {self.pressure_asked:.3g}{of_tokens})"


def achieved(
    scenario: Mapping[str, Any], target: TargetRecord, steps: Steps | None, windows: Sequence[InUse]
) -> Achieved:
    """`scenario` is as run.json has it; its pressure is solved, so it has the capacity that it was solved for."""
    largest = max((window.working_set_tokens for window in windows), default=None)
    capacity = kv_capacity(target) or scenario.get("capacity_tokens")
    asked = scenario.get("pressure")
    return Achieved(
        sharing=steps.shareable / steps.prompt_tokens if steps else None,
        sharing_asked=_share(scenario.get("sharing")),
        working_set_tokens=largest,
        capacity_tokens=capacity,
        capacity_unknown=None if capacity else why_no_capacity(target.identity),
        pressure=None if largest is None or not capacity else largest / capacity,
        pressure_asked=asked,
        pressure_asked_of_tokens=None if asked is None else scenario.get("capacity_tokens"),
    )


def _share(sharing: Any) -> float | None:
    """The share in a scenario's `sharing`, which is a number, {share: ...}, or a list of levels."""
    if isinstance(sharing, Mapping):
        return float(sharing["share"])
    return float(sharing) if isinstance(sharing, int | float) else None
