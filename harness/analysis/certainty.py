"""How sure the main numbers of a target are: intervals over sessions, what the end cut off, when it was steady."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.analysis.censored import SHARES, Censored, censored
from harness.analysis.numbers import between, percent, with_unit
from harness.analysis.steady import Steadiness, steadiness
from harness.analysis.steady_series import in_flight_series, median_series, ratio_series
from harness.record.manifest import Phase
from harness.statistics.by_session import Estimate, quantiles_by_session, ratio_by_session, share_by_session
from harness.statistics.moments import stretches_of

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

COLUMNS = (
    "phase", "status", "session", "t_due", "t_send", "t_last", "t_end", "ttft_ms", "ttft_due_ms", "e2e_ms",
    "cached_tokens", "prompt_tokens",
)  # fmt: skip
"""Of `requests`, that `certainty` looks at."""
MOST_REQUESTS = 1_000_000
"""Of more requests the columns take more memory than all the rest of a report, and chance is the least of doubts."""
_STARTS = {"ttft": ("TTFT", "t_send"), "ttft_due": ("TTFT from due", "t_due"), "e2e": ("E2E", "t_send")}
"""Time -> what it is called, and what it counts from."""


@dataclass(frozen=True, slots=True)
class Certainty:
    """Of the measured requests; times are of those that count, successes only."""

    hit_rate: Estimate
    """Cached over prompt tokens, as a share; of the requests that report both."""
    hits: Estimate
    """Share of the requests that found at least half of their prompt in the cache, of those that report both."""
    failed: Estimate
    """Share of the requests, without those that the end of the run cut off."""
    ttft: dict[str, Estimate]
    """p50, p90 and p99, in ms."""
    censored: tuple[Censored, ...]
    """TTFT, TTFT from due and E2E; each failure is left out."""
    steady: Steadiness

    def lines(self) -> Iterator[tuple[str, str]]:
        """A name and a sentence each, for the part of the report that says how far to trust it."""
        yield "steady", self.steady.sentence()
        yield "95 % intervals", self._intervals()
        for one in self.censored:
            if sentence := one.sentence():
                yield "cut off at the end", sentence

    def _intervals(self) -> str:
        """All of them, then those that there are none of, by the reason."""
        rates = {"hit rate": self.hit_rate, "requests with a hit": self.hits, "failed": self.failed}
        times = {f"TTFT {name}": one for name, one in self.ttft.items()}
        told: list[str] = []
        lacking: dict[str, list[str]] = {}
        for name, one in (rates | times).items():
            if one.low is None or one.high is None:
                lacking.setdefault(one.reason, []).append(name)
            else:
                told.append(f"{name} {between(one.low, one.high, percent if name in rates else with_unit)}")
        parts = [f"{', '.join(told)}; over sessions and moments"] if told else []
        parts += [f"none for {', '.join(names)} ({reason})" for reason, names in lacking.items()]
        return "; ".join(parts)


def certainty(rows: pd.DataFrame, counted: Bools, phases: Sequence[Phase]) -> Certainty:
    """`rows`: the target's requests with `COLUMNS`; `counted`, (rows,): those whose times count; its phases."""
    measured = _is(rows["phase"], "measure") & rows["session"].notna().to_numpy(dtype=bool)
    status = {name: _is(rows["status"], name) for name in ("ok", "cancelled")}
    sessions = rows["session"].to_numpy(dtype=np.int64, na_value=-1)
    cached, prompt = _floats(rows, "cached_tokens"), _floats(rows, "prompt_tokens")
    reporting = measured & ~np.isnan(cached) & ~np.isnan(prompt)
    ended = measured & ~status["cancelled"]
    timed = counted & measured & status["ok"]
    stretch = np.zeros(len(rows), dtype=np.int64)
    stretch[measured] = stretches_of(rows["t_due"].to_numpy(dtype=np.int64, na_value=-1)[measured])
    ttft_ms = _floats(rows, "ttft_ms")[timed]
    quantiles = quantiles_by_session(ttft_ms, sessions[timed], tuple(SHARES.values()), stretches=stretch[timed])
    ends_ns = max((phase.end_ns for phase in phases if phase.phase == "measure"), default=None)
    cut_off = measured & counted & status["cancelled"]
    return Certainty(
        hit_rate=ratio_by_session(cached[reporting], prompt[reporting], sessions[reporting]),
        hits=share_by_session((2 * cached >= prompt)[reporting], sessions[reporting]),
        failed=share_by_session(~status["ok"][ended], sessions[ended], stretch[ended]),
        ttft={name: quantiles[share] for name, share in SHARES.items()},
        censored=()
        if ends_ns is None
        else tuple(_censored(rows, column, timed, cut_off, ends_ns) for column in _STARTS),
        steady=_steady(rows, cached, prompt, phases),
    )


def _censored(rows: pd.DataFrame, column: str, timed: Bools, cut_off: Bools, ends_ns: int) -> Censored:
    what, start = _STARTS[column]
    times_ms, starts_ns = _floats(rows, f"{column}_ms"), rows[start].to_numpy(dtype=np.int64, na_value=-1)
    is_known = ~np.isnan(times_ms)
    ages_ms = np.maximum((ends_ns - starts_ns[cut_off & ~is_known & (starts_ns >= 0)]) / 1e6, 0.0)
    return censored(what, times_ms[timed & is_known], ages_ms, later_ms=times_ms[cut_off & is_known])


def _steady(rows: pd.DataFrame, cached: Floats, prompt: Floats, phases: Sequence[Phase]) -> Steadiness:
    """Of all requests of the load, ramp and measure, in seconds since it began."""
    load = (_is(rows["phase"], "ramp") | _is(rows["phase"], "measure")) & rows["t_send"].notna().to_numpy(dtype=bool)
    begin_ns = min((phase.start_ns for phase in phases if phase.phase in ("ramp", "measure")), default=0)
    measured_ns = min((phase.start_ns for phase in phases if phase.phase == "measure"), default=begin_ns)
    sent_s = (rows["t_send"].to_numpy(dtype=np.int64, na_value=0)[load] - begin_ns) / 1e9
    stamps = (rows[name].to_numpy(dtype=np.int64, na_value=-1)[load] for name in ("t_send", "t_last", "t_end"))
    # As in the page's plot: one that failed was under way until its last sign, and one that was cut off to the end.
    is_cut_off = _is(rows["status"], "cancelled")[load]
    ended_s = np.where(is_cut_off, np.inf, (np.maximum.reduce(list(stamps)) - begin_ns) / 1e9)
    series = [
        ratio_series("hit rate", sent_s, cached[load], prompt[load]),
        median_series("TTFT p50", sent_s, _floats(rows, "ttft_ms")[load]),
        in_flight_series("requests in flight", sent_s, ended_s),
    ]
    return steadiness(series, int(load.sum()), (measured_ns - begin_ns) / 1e9)


def _is(column: pd.Series, text: str) -> Bools:
    found: Bools = (column == text).fillna(False).to_numpy(dtype=bool)
    return found


def _floats(rows: pd.DataFrame, column: str) -> Floats:
    return rows[column].to_numpy(dtype=np.float64, na_value=np.nan)
