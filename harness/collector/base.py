"""What every collector offers, and the words that it speaks in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from harness.collector.metrics_page import Sample
from harness.collector.replica import Restart

Moment = Literal["check", "before", "warmup_end", "periodic", "after"]
Row = dict[str, Any]
"""t_ns, moment, target, replica, name, family, type, labels, value, reset, error: see the `server_metrics` table."""
Sink = Callable[[list[Row]], None]
"""Is given the rows of one scrape at a time."""
IsIdle = Callable[[Mapping[str, float]], bool | None]
"""Whether a scrape (name -> sum over labels) shows no request running or queued; None: it does not tell."""


class Collector(Protocol):
    """The metrics of one target: on demand at the borders of a run, and periodically in between.

    Needs gevent's patched sockets (as Locust makes them), else a slow server holds up the whole process.
    Servers that do not answer raise nothing: `reason` and the rows say so. What the sink raises comes through.
    """

    @property
    def reason(self) -> str | None:
        """What was wrong with the last scrape or border, and where; None: nothing, or nothing was asked yet."""
        ...

    @property
    def available(self) -> bool:
        """Whether the last scrapes brought samples from a replica at least."""
        ...

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All samples of the last scrape of every replica; none at all if one of them could not be read."""
        ...

    @property
    def missed_ticks(self) -> int:
        """Periodic scrapes that were left out because the one before took too long."""
        ...

    @property
    def restarts(self) -> list[Restart]:
        """Each restart of a server that was noticed since the first scrape."""
        ...

    @property
    def notes(self) -> list[str]:
        """What a reader of the rows has to know, a sentence each."""
        ...

    def start(self) -> None:
        """Begin the periodic scrapes."""
        ...

    def stop(self) -> None:
        """End the periodic scrapes, after the one under way. Raises what the sink raised during one of them."""
        ...

    def scrape_now(self, moment: Moment) -> None:
        """One scrape of every replica that begins after this call."""
        ...

    def settle(self, moment: Moment, is_idle: IsIdle, timeout_s: float = 10.0) -> bool:
        """Scrape until the engine is idle and its counters stand still; the last scrape is that of `moment`.

        Engines publish counts some time after the work, so one scrape after the last answer may miss some of it.
        An engine that does not tell whether it is idle settles by its counters alone.
        Returns whether it did settle within `timeout_s` and the time that the scrapes need; if not, `reason` says so.
        """
        ...
