"""The metrics pages of one target as they were scraped, and what happened on them from one moment to another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from harness.analysis.rows import Rows
from harness.record.manifest import MetricNames, TargetRecord

Labels = frozenset[tuple[str, str]]
Page = Mapping[str, Mapping[Labels, float]]
"""Name -> label set -> value, of the engine's own metrics alone; empty if the page shows none of them."""


class Unknown(Exception):
    """A number cannot be told; the message says why."""


@dataclass(frozen=True, slots=True)
class Replica:
    """The scrapes of one metrics page, in the order of time."""

    name: str
    """For sentences."""
    pages: Mapping[int, Page]
    """Time in ns -> page, for the scrapes that brought one."""
    errors: Mapping[int, str]
    """Time in ns -> why there is no page."""
    last_at: Mapping[str, int]
    """Moment -> time of its last scrape, which is the one that counts."""
    resets: tuple[int, ...]
    """Times of the first scrapes after a restart of the server."""

    def border_ns(self, moment: str) -> int:
        """Time of the scrape that counts for `moment`. Raises Unknown if there is none, or if it failed."""
        if moment not in self.last_at:
            raise Unknown(f"{self.name} was not scraped at {moment}")
        time_ns = self.last_at[moment]
        if time_ns in self.errors:
            raise Unknown(f"the scrape of {self.name} at {moment} failed: {self.errors[time_ns]}")
        return time_ns

    def restarts(self, start_ns: int, end_ns: int) -> list[tuple[int, int]]:
        """(last scrape before, first scrape after) each restart between two scrapes."""
        resets = [reset for reset in self.resets if start_ns < reset <= end_ns]
        return [(max(time for time in self.pages if time < reset), reset) for reset in resets]

    def stretches(self, start_ns: int, end_ns: int) -> list[tuple[int, int]]:
        """The pieces between two scrapes in which the server was not restarted, each from one scrape to another."""
        borders = [start_ns, *(time for restart in self.restarts(start_ns, end_ns) for time in restart), end_ns]
        return [(start, end) for start, end in list(pairwise(borders))[::2] if start < end]

    def growth(self, metric: MetricNames, start_ns: int, end_ns: int) -> float:
        """How far a counter grew between two scrapes without a restart in between, summed over its label sets.

        The first name that the last page has counts. A label set that is new counts from 0. Raises Unknown if one of
        the two pages does not tell, or if a value falls, vanishes or is no number.
        """
        last = self.pages[end_ns]
        name = next((name for name in metric.names if series_of(last, metric, name)), None)
        names = metric.names if name is None else (name,)
        ends = {}
        for which, time_ns in (("first", start_ns), ("last", end_ns)):
            series = [series_of(self.pages[time_ns], metric, one) for one in names]
            if not any(series) and not (metric.absent_is_zero and self.pages[time_ns]):
                raise Unknown(self._lack(metric, names, which, self.pages[time_ns]))
            ends[which] = {labels: value for values in series for labels, value in values.items()}
        if not all(map(math.isfinite, [*ends["first"].values(), *ends["last"].values()])):
            raise Unknown(f"{' or '.join(names)} of {self.name} has a value that is not a number")
        self._check(metric, names, start_ns, end_ns)
        return sum(ends["last"].values()) - sum(ends["first"].values())

    def rounding(self, metric: MetricNames, start_ns: int, end_ns: int) -> float:
        """How far `growth` may be off at most, as the page rounds long numbers; 0: not at all."""
        return sum(
            _half_unit(value, metric.digits)
            for time_ns in (start_ns, end_ns)
            for name in metric.names
            for value in series_of(self.pages[time_ns], metric, name).values()
        )

    def _check(self, metric: MetricNames, names: tuple[str, ...], start_ns: int, end_ns: int) -> None:
        """Raises Unknown if a series fell or vanished."""
        latest: dict[tuple[str, Labels], float] = {}
        for time_ns, page in self.pages.items():
            if start_ns <= time_ns <= end_ns:
                for name in names:
                    for labels, value in series_of(page, metric, name).items():
                        if value < latest.get((name, labels), 0.0):
                            raise Unknown(f"{name} of {self.name} fell during the run: the engine was restarted")
                        latest[name, labels] = value
        for name, labels in latest:
            if labels not in series_of(self.pages[end_ns], metric, name):
                raise Unknown(f"a series of {name} vanished from the page of {self.name} during the run")

    def _lack(self, metric: MetricNames, names: tuple[str, ...], which: str, page: Page) -> str:
        if not page:
            return f"the {which} page of {self.name} shows none of the engine's metrics"
        return f"the {which} page of {self.name} has no {metric.kind} {' or '.join(names)} ({metric.counts})"


def _half_unit(value: float, digits: int | None) -> float:
    """Half of what the last of the `digits` significant digits of a count stands for; 0 where they show all of it."""
    if digits is None or value < 10**digits:
        return 0.0
    return 10.0 ** (math.floor(math.log10(value)) - digits + 1) / 2


def series_of(page: Page, metric: MetricNames, name: str) -> dict[Labels, float]:
    """The series of a page that count for `metric` under one of its names."""
    wanted = metric.labels.items()
    return {labels: value for labels, value in page.get(name, {}).items() if wanted <= dict(labels).items()}


def replicas(samples: Rows, target: TargetRecord) -> list[Replica]:
    """The pages of the target, one list of scrapes for each replica; empty if nothing was scraped."""
    scrapes = samples.read("t_ns", "moment", "replica", "reset", "error")
    names = [name for metric in target.metrics for name in metric.names]
    # Labels are lists of texts: only those of the engine's own metrics are read.
    own = samples.some(
        pc.field("name").isin(pa.array(names, pa.string())), "t_ns", "replica", "name", "labels", "value"
    )
    own_of = {_text(replica): some for replica, some in own.groupby("replica", dropna=False)}
    of_replica = [(_text(replica), some) for replica, some in scrapes.groupby("replica", dropna=False)]
    return [
        _replica(
            f"{target.name} replica {replica}" if len(of_replica) > 1 else target.name,
            some,
            own_of.get(replica, own.iloc[:0]),
        )
        for replica, some in of_replica
    ]


def _text(cell: Any) -> str | None:
    return None if pd.isna(cell) else str(cell)


def show_engine(pages: Sequence[Replica]) -> bool:
    """Whether any page shows any metric of the engine."""
    return any(page for replica in pages for page in replica.pages.values())


def some_pages(pages: Sequence[Replica], target: TargetRecord) -> None:
    """Raises Unknown if none of the target's pages can tell anything; the message says how to get some."""
    if not target.metrics:
        raise Unknown(f"kvswarm knows no metrics of {target.identity.get('engine', 'the engine')}")
    if not pages:
        is_wanted = target.target.get("metrics_urls", True) or target.target.get("prometheus")
        raise Unknown("no metrics were scraped" if is_wanted else "the target names no metrics page")
    if not show_engine(pages):
        errors = [error for replica in pages for error in replica.errors.values()]
        why = f"no scrape brought any of the engine's metrics{f': {errors[-1]}' if errors else ''}"
        advice = target.advice.get("metrics", "")
        raise Unknown(why if advice in why else f"{why}; {advice}")


def _replica(name: str, scrapes: pd.DataFrame, own: pd.DataFrame) -> Replica:
    """`scrapes` has a row for each sample of its pages, `own` those of the engine's own metrics."""
    scrapes = scrapes.sort_values("t_ns", kind="stable")
    failed = scrapes[scrapes["error"].notna()]
    errors = {int(t_ns): str(error) for t_ns, error in zip(failed["t_ns"], failed["error"], strict=True)}
    pages: dict[int, dict[str, dict[Labels, float]]] = {
        int(t_ns): {} for t_ns in scrapes["t_ns"].unique() if t_ns not in errors
    }
    own = own[own["t_ns"].isin(pages.keys())].sort_values("t_ns", kind="stable")
    for t_ns, metric, labels, value in zip(own["t_ns"], own["name"], own["labels"], own["value"], strict=True):
        pages[int(t_ns)].setdefault(metric, {})[frozenset(labels)] = float(value)
    # A page with both is not the first one after a restart: a series has come back that it did not have yet.
    is_first = scrapes[scrapes["reset"].notna()].groupby("t_ns")["reset"].all()
    last_at = {str(moment): int(t_ns) for moment, t_ns in scrapes.groupby("moment")["t_ns"].max().items()}
    return Replica(name, pages, errors, last_at, tuple(map(int, is_first.index[is_first])))


def clock_time(time_ns: int) -> str:
    """Time of day in UTC, to a tenth of a second."""
    tenths = time_ns // 100_000_000
    return f"{datetime.fromtimestamp(tenths // 10, UTC):%H:%M:%S}.{tenths % 10}"
