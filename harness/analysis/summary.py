"""One target of a run in numbers: one value for each table of the report."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from harness.analysis.achieved import Achieved, achieved
from harness.analysis.agreement import Agreement, agreement
from harness.analysis.arrived import Arrived, arrived
from harness.analysis.certainty import COLUMNS, MOST_REQUESTS, Certainty, certainty
from harness.analysis.columns import stretches
from harness.analysis.contamination import Contamination, contamination
from harness.analysis.counters import CounterRate, of_counters
from harness.analysis.health import Bools, Health, health_of
from harness.analysis.herd import Herds, find_herds
from harness.analysis.hit_rate import HitRate, of_requests
from harness.analysis.latency import Percentiles, percentiles_with
from harness.analysis.pages import Replica, replicas, show_engine
from harness.analysis.request_log import Coverage, RequestLog, read_log
from harness.analysis.run import TargetRun
from harness.analysis.server import ServerFigures, of_server
from harness.analysis.stamps import Stamps, stamps_of
from harness.analysis.throughput import Throughput, throughput
from harness.analysis.waterfall import Waterfall, waterfall
from harness.analysis.working_set import InUse, working_sets
from harness.record.manifest import StartUpCheck


@dataclass(frozen=True, slots=True)
class Times:
    """Percentiles in ms of the durations of section "times" in docs/results.md."""

    ttft: Percentiles
    ttft_due: Percentiles
    tpot: Percentiles
    e2e: Percentiles


@dataclass(frozen=True, slots=True)
class Group:
    """The measured requests of one kind of session, all or one warmth of them."""

    kind: str
    scenario: str
    warmth: str
    """cold, warm or all."""
    requests: int
    """Those that count: without those that were left out, as the harness was the bottleneck."""
    failed: int
    """Neither ok nor cancelled: the end of the test is no fault of the engine."""
    by_status: dict[str, int]
    """Number of requests for each status but ok."""
    times: Times
    """Of successes only."""
    times_with_failures: Times | None
    """With each failure as +inf; None if none failed."""
    hit_rate: HitRate


@dataclass(frozen=True, slots=True)
class WarmToCold:
    """Median TTFT of warm turns over that of cold ones; None: one of them is not known."""

    kind: str
    scenario: str
    ratio: float | None
    warm_ttft_ms: float | None
    cold_ttft_ms: float | None


@dataclass(frozen=True, slots=True)
class PlannedLengths:
    """Prompt lengths by plan against those that the engine itself counted."""

    compared: int
    exact: int
    largest_difference_tokens: int | None
    """Of reported - planned, in size; None: nothing to compare."""


@dataclass(frozen=True, slots=True)
class Summary:
    """All that the report shows of one target."""

    target: str
    """Its name."""
    url: str | None
    """None: run.json does not say."""
    identity: Mapping[str, Any]
    """Who answered, as run.json has it: the fields of `harness.engines.base.Identity`."""
    cold_start: str
    """How its part of the run began cold, in words; empty: not known."""
    check: StartUpCheck | None
    """None: it was not made."""
    groups: tuple[Group, ...]
    warm_to_cold: tuple[WarmToCold, ...]
    hit_rate: HitRate
    """Of all measured requests."""
    counters: CounterRate
    server: ServerFigures
    agreement: Agreement
    contamination: Contamination
    herds: Herds
    waterfall: Waterfall
    working_set: tuple[InUse, ...]
    """By window; empty: nothing was measured."""
    achieved: Achieved
    coverage: Coverage
    """Of herds, waterfall, working_set, achieved, and the hits of contamination; all else is of all requests."""
    arrived: Arrived | None
    """None: a closed loop."""
    throughput: Throughput | None
    """Of the successful requests of the measured phase; None: there was no such phase."""
    planned_lengths: PlannedLengths
    stamps: Stamps
    health: Health
    certainty: Certainty | None
    """How sure the main numbers are; None: there are more than `MOST_REQUESTS`."""
    chunks_counted: int
    """Requests whose output tokens nobody counted: each chunk was taken for one, so their TPOT is a time per chunk."""
    advice: Mapping[str, str]
    """What the server was started without -> how to start it; of cached_tokens and metrics."""


def summarise(run: TargetRun) -> Summary:
    """All numbers are of the measured phase alone; times are of `TargetRun.is_counted`, tokens of all.

    What the cache models say is of `Summary.coverage`. Columns are read as they are needed.
    """
    return summary_and_log(run, replicas(run.samples, run.target))[0]


def summary_and_log(run: TargetRun, pages: Sequence[Replica]) -> tuple[Summary, RequestLog]:
    """And the requests that the models were given; `pages` is what `replicas` made of `run`."""
    rows = run.rows.read("kind", "scenario", "warmth", "status", "cached_tokens", "prompt_tokens")
    hits = of_requests(rows, run.is_measured)
    counted = of_counters(pages, run.target)
    server = of_server(run, pages)
    external = server.external_cached_tokens
    sent = run.rows.read("t_send", "phase", "cached_tokens", "prompt_tokens")
    agreed = agreement(sent, counted, None if external is None else external.value)
    run.is_counted  # noqa: B018  both need it
    with ThreadPoolExecutor(max_workers=1) as beside, _no_collection():
        # The models are plain Python; columns are read and put in order without it.
        timed = beside.submit(lambda: (_groups(run, rows), *stamps_of(run), throughput(run, "kvswarm")))
        log = read_log(run)
        fall, in_use = waterfall(log, run.target), working_sets(log)
        herds = find_herds(log, run.target.identity.get("granularity_tokens") or 1)
        contaminated = contamination(run, log, pages, agreed)
        groups, stamps, chunks_counted, per_s = timed.result()
    lacks = {
        "cached_tokens": hits.ok_cached_unknown > 0,
        "metrics": bool(pages) and not show_engine(pages),
    }
    summary = Summary(
        target=run.target.name,
        url=run.target.target.get("url"),
        identity=run.target.identity,
        cold_start=run.target.cold_start,
        check=run.target.check,
        groups=groups,
        warm_to_cold=_warm_to_cold(groups),
        hit_rate=hits,
        counters=counted,
        server=server,
        agreement=agreed,
        contamination=contaminated,
        herds=herds,
        waterfall=fall,
        working_set=in_use,
        achieved=achieved(run.scenario, run.target, fall.steps, in_use),
        coverage=log.coverage,
        arrived=arrived(run),
        throughput=per_s,
        planned_lengths=_planned_lengths(run),
        stamps=stamps,
        health=health_of(run.times, run.is_measured, run.harness_health, run.all_requests),
        certainty=None if len(rows) > MOST_REQUESTS else certainty(run.rows.read(*COLUMNS), run.is_counted, run.phases),
        chunks_counted=chunks_counted,
        advice={need: how for need, how in run.target.advice.items() if lacks.get(need)},
    )
    return summary, log


@contextmanager
def _no_collection() -> Iterator[None]:
    """Leave Python's collector alone: models make millions of things and no garbage, and to look for it takes a tenth
    of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _groups(run: TargetRun, rows: pd.DataFrame) -> tuple[Group, ...]:
    """By kind and scenario, in order; within each cold, warm and all."""
    kinds = _kinds(rows, run.is_measured)
    members = [
        (kind, scenario, warmth, which)
        for kind, scenario in kinds
        for warmth in ("cold", "warm", "all")
        if (which := _members(run, rows, kind, scenario, warmth)).any()
    ]
    by_status = [_failures(rows["status"], which & run.is_counted) for *_, which in members]
    failed = [sum(counts.values()) - counts.get("cancelled", 0) for counts in by_status]
    timed = run.is_counted & (rows["status"] == "ok").to_numpy(dtype=bool)
    times = _times(run, [(which & timed, n) for (*_, which), n in zip(members, failed, strict=True)])
    return tuple(
        Group(
            kind=kind,
            scenario=scenario,
            warmth=warmth,
            requests=int((which & run.is_counted).sum()),
            failed=n,
            by_status=counts,
            times=of_successes,
            times_with_failures=of_all if n else None,
            hit_rate=of_requests(rows, which),
        )
        for (kind, scenario, warmth, which), counts, n, (of_successes, of_all) in zip(
            members, by_status, failed, times, strict=True
        )
    )


def _kinds(rows: pd.DataFrame, which: Bools) -> list[tuple[str, str]]:
    """The pairs of kind and scenario that some of the rows have."""
    kinds, scenarios = rows["kind"].cat, rows["scenario"].cat
    kind_codes, scenario_codes = kinds.codes.to_numpy(), scenarios.codes.to_numpy()
    found = set()
    for part in stretches(len(rows)):
        of_kind, of_scenario = kind_codes[part][which[part]], scenario_codes[part][which[part]]
        for kind in np.unique(of_kind).tolist():
            found |= {(kind, one) for one in np.unique(of_scenario[of_kind == kind]).tolist()}
    return sorted((kinds.categories[kind], scenarios.categories[one]) for kind, one in found if min(kind, one) >= 0)


def _members(run: TargetRun, rows: pd.DataFrame, kind: str, scenario: str, warmth: str) -> Bools:
    """Shape (rows,): the measured requests of a group."""
    which = (rows["kind"] == kind) & (rows["scenario"] == scenario)
    if warmth != "all":
        which &= rows["warmth"] == warmth
    return run.is_measured & which.to_numpy(dtype=bool)


def _failures(statuses: pd.Series, which: Bools) -> dict[str, int]:
    """Of some of the rows: how many have each status but ok."""
    names, codes = statuses.cat.categories, statuses.cat.codes.to_numpy()
    counts = {str(name): int(((codes == number) & which).sum()) for number, name in enumerate(names)}
    return {name: n for name, n in sorted(counts.items()) if n and name != "ok"}


def _times(run: TargetRun, groups: Sequence[tuple[Bools, int]]) -> list[tuple[Times, Times]]:
    """Of each group (which rows are timed, failures), without its failures and with them."""
    found: list[list[list[Percentiles]]] = [[] for _ in groups]
    for names in (("ttft_ms", "ttft_due_ms"), ("tpot_ms", "e2e_ms")):  # as the fields of `Times`; two at a time
        columns = run.rows.read(*names)
        for name in names:
            values = columns[name].to_numpy()
            known = ~np.isnan(values)
            for (which, failures), of_group in zip(groups, found, strict=True):
                of_group.append(percentiles_with(values[which & known], [0, failures], in_place=True))
    return [(Times(*(one for one, _ in pairs)), Times(*(other for _, other in pairs))) for pairs in found]


def _warm_to_cold(groups: Sequence[Group]) -> tuple[WarmToCold, ...]:
    """One for each kind and scenario."""
    ratios = []
    for kind, scenario in dict.fromkeys((group.kind, group.scenario) for group in groups):
        medians = {
            group.warmth: group.times.ttft.p50 for group in groups if (group.kind, group.scenario) == (kind, scenario)
        }
        warm, cold = medians.get("warm"), medians.get("cold")
        ratios.append(WarmToCold(kind, scenario, warm / cold if warm is not None and cold else None, warm, cold))
    return tuple(ratios)


def _planned_lengths(run: TargetRun) -> PlannedLengths:
    rows = run.rows.read("prompt_tokens", "planned_prompt_tokens")
    compared = exact = largest = 0
    for part in stretches(len(rows)):
        some = rows.iloc[part][run.is_measured[part]]
        difference = (some["prompt_tokens"] - some["planned_prompt_tokens"]).dropna().abs()
        compared += len(difference)
        exact += int((difference == 0).sum())
        largest = max(largest, int(difference.max())) if len(difference) else largest
    return PlannedLengths(compared, exact, largest if compared else None)
