"""How far another machine's clock is from ours, by messages that go there and back.

Of each exchange four times are known: sent and returned by our clock, seen and answered by theirs. If both ways took
equally long, theirs is ahead by ((seen - sent) + (answered - returned)) / 2; however the two ways differ, that is off
by at most half of the time under way, ((returned - sent) - (answered - seen)) / 2 (RFC 5905, section 8). The exchange
that was under way for the shortest time bounds it best.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message and its answer; all times in ns since the epoch."""

    sent_ns: int
    """By our clock; so is the last."""
    seen_ns: int
    """By their clock; so is the next."""
    answered_ns: int
    returned_ns: int

    @property
    def under_way_ns(self) -> int:
        return (self.returned_ns - self.sent_ns) - (self.answered_ns - self.seen_ns)


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Their clock minus ours."""

    offset_ns: int
    error_ns: int
    """The true offset lies within offset_ns - error_ns and offset_ns + error_ns."""

    @property
    def shift_ns(self) -> int:
        """By how much to correct their times: nothing, if no offset would explain the exchange as well."""
        return self.offset_ns if abs(self.offset_ns) > self.error_ns else 0

    def moved_ns(self, later: ClockOffset) -> int:
        """By how much at least the offset has changed until `later`; 0 if the errors explain all of it."""
        change_ns = later.offset_ns - self.offset_ns
        sure_ns = max(0, abs(change_ns) - self.error_ns - later.error_ns)
        return sure_ns if change_ns > 0 else -sure_ns


def clock_offset(exchanges: Iterable[Exchange]) -> ClockOffset | None:
    """By the exchange that was under way for the shortest time; None: there was none that tells."""
    # Where a clock was set meanwhile, the time under way can come out as less than nothing.
    possible = (exchange for exchange in exchanges if exchange.under_way_ns >= 0)
    best = min(possible, key=lambda exchange: exchange.under_way_ns, default=None)
    if best is None:
        return None
    offset_ns = ((best.seen_ns - best.sent_ns) + (best.answered_ns - best.returned_ns)) // 2
    return ClockOffset(offset_ns, (best.under_way_ns + 1) // 2)
