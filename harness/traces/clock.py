"""Times of a trace: never decreasing, and known of all requests or of none."""

from __future__ import annotations

from harness.traces.entry import BadEntry


class Clock:
    """Checks the times of a list of requests as they come."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._last_s: float | None = None
        self._is_known: bool | None = None

    def passed(self, time_s: float) -> float:
        """`time_s` itself. Raises BadEntry, and forgets it, if it lies before an earlier one."""
        if self._last_s is not None and time_s < self._last_s:
            raise BadEntry(
                f"{self._key} goes back from {self._last_s:g} s to {time_s:g} s; requests stand in order of time"
            )
        self._last_s = time_s
        return time_s

    def passed_if_known(self, time_s: float | None) -> float | None:
        """The same for a time that may be unknown. Raises BadEntry too if it is known of some requests only."""
        if self._is_known not in (None, time_s is not None):
            is_known, was_known = ("known", "not") if time_s is not None else ("not known", "it was")
            raise BadEntry(
                f"{self._key} is {is_known} here, and {was_known} before; give it for all requests or for none"
            )
        if time_s is not None:
            self.passed(time_s)
        self._is_known = time_s is not None
        return time_s
