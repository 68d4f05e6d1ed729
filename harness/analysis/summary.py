"""One target of a run in numbers: one value for each table of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.analysis.achieved import Achieved, achieved
from harness.analysis.agreement import Agreement, agreement
from harness.analysis.arrived import Arrived, arrived
from harness.analysis.contamination import Contamination, contamination
from harness.analysis.counters import CounterRate, of_counters
from harness.analysis.health import Health, health_of
from harness.analysis.herd import Herds, find_herds
from harness.analysis.hit_rate import HitRate, of_requests
from harness.analysis.latency import Percentiles, percentiles
from harness.analysis.pages import replicas, show_engine
from harness.analysis.request_log import read_log
from harness.analysis.run import TargetRun
from harness.analysis.server import ServerFigures, of_server
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
class Stamps:
    """How far the recorded times can be trusted."""

    by_clock: dict[str, int]
    """Number of requests with output for each clock."""
    error_ms: Percentiles
    """Of `stamp_error_ms`; n is 0 without kernel stamps."""
    coalesced_share: float | None
    """Output chunks that came in one read with an earlier one / all output chunks; None: no chunks."""
    clock_steps: int
    """Requests during which the clock was set."""
    late_ms: Percentiles
    """Of `late_ms`, the delay that is the harness's own."""


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
    arrived: Arrived | None
    """None: a closed loop."""
    planned_lengths: PlannedLengths
    stamps: Stamps
    health: Health
    chunks_counted: int
    """Requests whose output tokens nobody counted: each chunk was taken for one, so their TPOT is a time per chunk."""
    advice: Mapping[str, str]
    """What the server was started without -> how to start it; of cached_tokens and metrics."""


def summarise(run: TargetRun) -> Summary:
    """All numbers are of the measured phase alone; times are of `TargetRun.counted`, tokens of all."""
    measured, counting = run.measured, run.counted
    groups: list[Group] = []
    ratios: list[WarmToCold] = []
    for (kind, scenario), rows in measured.groupby(["kind", "scenario"]):
        by_warmth = {warmth: rows[rows["warmth"] == warmth] for warmth in ("cold", "warm")}
        named = [(name, some) for name, some in (*by_warmth.items(), ("all", rows)) if len(some)]
        of_kind = {warmth: _group(str(kind), str(scenario), warmth, some, counting) for warmth, some in named}
        groups.extend(of_kind.values())
        ratios.append(_warm_to_cold(str(kind), str(scenario), of_kind))
    hits = of_requests(measured)
    pages = replicas(run.server_metrics, run.target)
    counted = of_counters(pages, run.target)
    server = of_server(run, pages)
    external = server.external_cached_tokens
    agreed = agreement(run.requests, counted, None if external is None else external.value)
    log = read_log(run)
    fall, in_use = waterfall(log, run.target), working_sets(log)
    lacks = {
        "cached_tokens": hits.ok_cached_unknown > 0,
        "metrics": bool(pages) and not show_engine(pages),
    }
    return Summary(
        target=run.target.name,
        url=run.target.target.get("url"),
        identity=run.target.identity,
        cold_start=run.target.cold_start,
        check=run.target.check,
        groups=tuple(groups),
        warm_to_cold=tuple(ratios),
        hit_rate=hits,
        counters=counted,
        server=server,
        agreement=agreed,
        contamination=contamination(run, log, pages, agreed),
        herds=find_herds(log, run.target.identity.get("granularity_tokens") or 1),
        waterfall=fall,
        working_set=in_use,
        achieved=achieved(run.scenario, run.target, fall.steps, in_use),
        arrived=arrived(run),
        planned_lengths=_planned_lengths(measured),
        stamps=_stamps(counting),
        health=health_of(measured, run.harness_health, run.all_requests),
        chunks_counted=int((counting["output_tokens_source"] == "events").sum()),
        advice={need: how for need, how in run.target.advice.items() if lacks.get(need)},
    )


def _group(kind: str, scenario: str, warmth: str, measured: pd.DataFrame, counting: pd.DataFrame) -> Group:
    """`counting`: the rows whose times count, of whatever kind and warmth."""
    rows = measured[measured.index.isin(counting.index)]
    ok = rows[rows["status"] == "ok"]
    by_status = {str(status): int(n) for status, n in rows["status"].value_counts().sort_index().items()}
    by_status.pop("ok", None)
    failed = sum(by_status.values()) - by_status.get("cancelled", 0)
    return Group(
        kind=kind,
        scenario=scenario,
        warmth=warmth,
        requests=len(rows),
        failed=failed,
        by_status=by_status,
        times=_times(ok, 0),
        times_with_failures=_times(ok, failed) if failed else None,
        hit_rate=of_requests(measured),
    )


def _times(ok: pd.DataFrame, failures: int) -> Times:
    return Times(
        ttft=percentiles(ok["ttft_ms"], failures),
        ttft_due=percentiles(ok["ttft_due_ms"], failures),
        tpot=percentiles(ok["tpot_ms"], failures),
        e2e=percentiles(ok["e2e_ms"], failures),
    )


def _warm_to_cold(kind: str, scenario: str, groups: dict[str, Group]) -> WarmToCold:
    warm, cold = (groups[name].times.ttft.p50 if name in groups else None for name in ("warm", "cold"))
    return WarmToCold(kind, scenario, warm / cold if warm is not None and cold else None, warm, cold)


def _planned_lengths(rows: pd.DataFrame) -> PlannedLengths:
    difference = (rows["prompt_tokens"] - rows["planned_prompt_tokens"]).dropna().abs()
    return PlannedLengths(
        compared=len(difference),
        exact=int((difference == 0).sum()),
        largest_difference_tokens=int(difference.max()) if len(difference) else None,
    )


def _stamps(rows: pd.DataFrame) -> Stamps:
    chunks = int(rows["chunks"].sum())
    clocks = rows.loc[rows["t_first"].notna(), "clock"]
    return Stamps(
        by_clock={str(clock): int(n) for clock, n in clocks.value_counts().sort_index().items()},
        error_ms=percentiles(rows["stamp_error_ms"]),
        coalesced_share=int(rows["coalesced"].sum()) / chunks if chunks else None,
        clock_steps=int(rows["clock_stepped"].sum()),
        late_ms=percentiles(rows["late_ms"]),
    )
