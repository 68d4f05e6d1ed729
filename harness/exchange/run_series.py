"""A finished run as series over time: what its requests add up to, and what its servers said."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.analysis.pages import replicas
from harness.analysis.run import Run, TargetRun
from harness.analysis.server import Together, scraped
from harness.exchange.families import RUN, SERVER
from harness.exchange.openmetrics import Scalars, Series
from harness.exchange.request_series import COLUMNS, RequestSeries


def series_of_run(run: Run) -> list[Series]:
    """Of all targets. A request counts from when it ended, a server's sample where it was read."""
    return [
        series for of_target in run.by_target() for series in (*_requests(run, of_target), *_server(run, of_target))
    ]


def _requests(run: Run, target: TargetRun) -> Iterator[Series]:
    if not target.is_measured.any():
        return
    found = RequestSeries(int(target.rows.read("t_due")["t_due"][target.is_measured].min()))
    counted, row = target.is_counted, 0
    target.rows.forget()
    for piece in target.rows.pieces(*COLUMNS):
        place = slice(row, row + len(piece))
        row += len(piece)
        measured = target.is_measured[place]
        found.add(piece[measured], counted[place][measured])
    labels = {"run_id": run.manifest.run_id, "target": target.target.name}
    yield Scalars(RUN, labels | _identity(run, target), [found.times_ns[0], found.times_ns[-1]], [1, 1])
    yield from found.series(labels)


def _identity(run: Run, target: TargetRun) -> dict[str, str]:
    known = {name: target.target.identity.get(name) for name in ("engine", "version", "model")}
    return {
        "scenario": run.manifest.scenario_name,
        **{name: "" if value is None else str(value) for name, value in known.items()},
        "kvswarm_version": run.manifest.kvswarm_version,
    }


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
