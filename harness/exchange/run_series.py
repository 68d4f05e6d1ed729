"""A finished run as series over time: what its requests add up to, and what its servers said."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from harness.analysis.pages import replicas
from harness.analysis.run import Run, TargetRun
from harness.analysis.server import Together, scraped
from harness.exchange.families import CACHED_TOKENS, OUTPUT_TOKENS, PROMPT_TOKENS, REQUESTS, RUN, SERVER, TIMES
from harness.exchange.openmetrics import BOUNDS_S, Histogram, Scalars, Series

STEP_NS = 5_000_000_000
"""Between two samples of what is counted of the requests."""
_STAMPS = ("t_due", "t_send", "t_first", "t_last", "t_end")
_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


def series_of_run(run: Run) -> list[Series]:
    """Of all targets. A request counts from when it ended, a server's sample where it was read."""
    return [
        series for of_target in run.by_target() for series in (*_requests(run, of_target), *_server(run, of_target))
    ]


def _requests(run: Run, target: TargetRun) -> Iterator[Series]:
    rows = target.measured
    if rows.empty:
        return
    ended = np.maximum.reduce([rows[name].to_numpy(dtype=np.int64, na_value=-1) for name in _STAMPS])
    start = int(rows["t_due"].min())
    # The first sample is before everything, so that all of it is growth.
    places = (ended - start) // STEP_NS + 1
    times = [start + STEP_NS * number for number in range(int(places.max()) + 1)]
    labels = {"run_id": run.manifest.run_id, "target": target.target.name}

    def counter(which: npt.NDArray[np.bool_], values: _Floats) -> list[float]:
        return list(_grown(places[which], values[which], len(times)))

    yield Scalars(RUN, labels | _identity(run, target), [times[0], times[-1]], [1, 1])
    ones, status = np.ones(len(rows)), rows["status"].to_numpy(dtype=object)
    for one in sorted(set(status)):
        yield Scalars(REQUESTS, labels | {"status": one}, times, counter(status == one, ones))
    prompt, cached, output = (
        rows[name].to_numpy(dtype=np.float64, na_value=np.nan)
        for name in ("prompt_tokens", "cached_tokens", "output_tokens")
    )
    has_prompt, both = ~np.isnan(prompt), ~np.isnan(prompt) & ~np.isnan(cached)
    for name, which in (("reported", both), ("unreported", has_prompt & ~both)):
        if which.any():
            yield Scalars(PROMPT_TOKENS, labels | {"cached": name}, times, counter(which, prompt))
    if both.any():
        yield Scalars(CACHED_TOKENS, labels, times, counter(both, cached))
    if not np.isnan(output).all():
        yield Scalars(OUTPUT_TOKENS, labels, times, counter(~np.isnan(output), output))
    counts = (status == "ok") & rows.index.isin(target.counted.index)
    by_cache = {"hit": both & (2 * cached >= prompt), "miss": both & (2 * cached < prompt), "unreported": ~both}
    for column, family in TIMES.items():
        seconds = rows[column].to_numpy(dtype=np.float64, na_value=np.nan) / 1e3
        for cache, which in by_cache.items():
            timed = counts & which & ~np.isnan(seconds)
            if timed.any():
                reached, sums = _histogram(places[timed], seconds[timed], len(times))
                yield Histogram(family, labels | {"cache": cache}, times, reached, sums.tolist())


def _identity(run: Run, target: TargetRun) -> dict[str, str]:
    known = {name: target.target.identity.get(name) for name in ("engine", "version", "model")}
    return {
        "scenario": run.manifest.scenario_name,
        **{name: "" if value is None else str(value) for name, value in known.items()},
        "kvswarm_version": run.manifest.kvswarm_version,
    }


def _grown(places: _Ints, values: _Floats, steps: int) -> _Floats:
    grown: _Floats = np.bincount(places, weights=values, minlength=steps).cumsum()
    return grown


def _histogram(places: _Ints, seconds: _Floats, steps: int) -> tuple[_Ints, _Floats]:
    """Shapes (steps, bounds + 1) and (steps,): counts at or below each bound, and the sums, up to each step."""
    width = len(BOUNDS_S) + 1
    cells = places * width + np.searchsorted(BOUNDS_S, seconds)
    counts = np.bincount(cells, minlength=steps * width).reshape(steps, width)
    return counts.cumsum(axis=0).cumsum(axis=1), _grown(places, seconds, steps)


def _server(run: Run, target: TargetRun) -> Iterator[Series]:
    pages = replicas(target.samples, target.target)
    for replica in pages:
        labels = {"run_id": run.manifest.run_id, "target": target.target.name}
        if len(pages) > 1:
            labels["replica"] = replica.name.removeprefix(f"{target.target.name} replica ")
        for metric in target.target.metrics:
            together: Together = max if metric.meaning == "kv_usage" else sum
            found = [(at_ns, value) for at_ns, value in scraped(replica, metric, together) if math.isfinite(value)]
            times, values = [at_ns for at_ns, _ in found], [value for _, value in found]
            # A meaning that a later version of kvswarm has added has no family here.
            if metric.meaning in SERVER and found:
                yield Scalars(SERVER[metric.meaning], labels, times, values)
