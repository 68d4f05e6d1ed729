"""Token hit rate from the deltas of the engine's own counters over the measured phase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from harness.record.manifest import HitCounters


@dataclass(frozen=True, slots=True)
class CounterRate:
    """What the counters say; None and a reason where they cannot tell."""

    rate: float | None
    cached_tokens: int | None
    prompt_tokens: int | None
    """Deltas, summed over labels and replicas; the prompt's includes the cached tokens."""
    since: str | None
    """Moment of the first scrape: warmup_end, or before where there is no scrape at warmup_end."""
    since_ns: int | None
    reason: str | None
    """Why there is no rate; None if there is one."""


class _Unknown(Exception):
    """The delta cannot be told; the message says why."""


def of_counters(samples: pd.DataFrame, counters: HitCounters | None) -> CounterRate:
    """Delta of the counters from warmup_end (else before) to after, each replica by itself, then summed.

    A series that the first page lacks counts from 0, since engines create series at their first event. A counter that
    falls, vanishes or is marked as reset makes the delta unknown, and so does a failed scrape at either end.
    """
    if counters is None:
        return _unknown("the engine has no such counters")
    if samples.empty:
        return _unknown("no metrics were scraped")
    since = "warmup_end" if (samples["moment"] == "warmup_end").any() else "before"
    cached = prompt = 0.0
    starts = []
    try:
        for (target, replica), of_source in samples.groupby(["target", "replica"], dropna=False):
            name = f"{target} replica {replica}" if isinstance(replica, str) else str(target)
            source = _Source(name, of_source, since)
            hit = source.delta(counters.cached)
            cached += hit
            prompt += source.delta(counters.prompt) + (0 if counters.prompt_includes_cached else hit)
            starts.append(source.start_ns)
    except _Unknown as unknown:
        return _unknown(str(unknown))
    return CounterRate(
        rate=cached / prompt if prompt else None,
        cached_tokens=round(cached),
        prompt_tokens=round(prompt),
        since=since,
        since_ns=min(starts),
        reason=None if prompt else "the counters did not move",
    )


def _unknown(reason: str) -> CounterRate:
    return CounterRate(None, None, None, None, None, reason)


class _Source:
    """The scrapes of one metrics page, from its first to its last one that counts."""

    def __init__(self, name: str, samples: pd.DataFrame, since: str) -> None:
        self._name = name
        self.start_ns = self._last_scrape(samples, since)
        self._end_ns = self._last_scrape(samples, "after")
        self._samples = samples[samples["t_ns"].between(self.start_ns, self._end_ns)].sort_values("t_ns")

    def _last_scrape(self, samples: pd.DataFrame, moment: str) -> int:
        at_moment = samples[samples["moment"] == moment]
        if at_moment.empty:
            raise _Unknown(f"{self._name} was not scraped at {moment}")
        time_ns = int(at_moment["t_ns"].max())
        errors = at_moment.loc[at_moment["t_ns"] == time_ns, "error"].dropna()
        if not errors.empty:
            raise _Unknown(f"the scrape of {self._name} at {moment} failed: {errors.iloc[0]}")
        return time_ns

    def delta(self, names: Sequence[str]) -> float:
        """Growth of the first counter in `names` that the last page has, summed over its label sets."""
        at_end = self._samples.loc[self._samples["t_ns"] == self._end_ns, "name"]
        name = next((name for name in names if (at_end == name).any()), None)
        if name is None:
            raise _Unknown(f"the last page of {self._name} has no counter {' or '.join(names)}")
        counter = self._samples[self._samples["name"] == name]
        # The first scrape compares with one before the phase: its reset is not ours.
        if counter.loc[counter["t_ns"] > self.start_ns, "reset"].fillna(False).any():
            raise _Unknown(f"{name} of {self._name} was reset during the run")
        series = counter["labels"].map(lambda labels: tuple(sorted(labels)))
        return sum(self._growth(name, one_series) for _, one_series in counter.groupby(series))

    def _growth(self, name: str, series: pd.DataFrame) -> float:
        times, values = series["t_ns"].tolist(), series["value"].tolist()
        if times[-1] != self._end_ns:
            raise _Unknown(f"a series of {name} vanished from the page of {self._name} during the run")
        if times[0] != self.start_ns:
            values.insert(0, 0.0)
        if not all(map(math.isfinite, values)):
            raise _Unknown(f"{name} of {self._name} has a value that is not a number")
        if any(later < earlier for earlier, later in pairwise(values)):
            raise _Unknown(f"{name} of {self._name} fell during the run: the engine was restarted")
        return float(values[-1] - values[0])
