"""Where the hit rate went: from what requests shared to what the engine reported, step by step, in tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from harness.analysis.expected import Expectation, expect
from harness.analysis.expected_engines import EngineCache, engine_cache
from harness.analysis.expected_replicas import expect_on_replicas, replica_names, silent_requests
from harness.analysis.levels import by_level
from harness.analysis.request_log import RequestLog
from harness.analysis.steps import Part, Steps, parts, plain, summed
from harness.analysis.time_windows import time_windows
from harness.record.manifest import TargetRecord

PHASES = ("check", "warmup", "ramp", "measure")
"""In their order."""
CONTRIBUTORS = 10
"""How many requests are named."""


@dataclass(frozen=True, slots=True)
class Contributor:
    """A request that was not answered as expected."""

    request_id: str
    session: int | None
    turn: int | None
    expected: int
    measured: int
    unexplained: int
    from_token: int
    """The first token of its prompt, from 0, that was cached by one account and not by the other."""


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Of one target, over the measured requests that report their cached tokens; if none does, over all of them."""

    steps: Steps | None
    """None: `unknown` says why."""
    model: str
    """The cache that was modelled, in words."""
    caching_is_off: bool
    """There is no room at all: capacity takes all that is left."""
    unknown: Mapping[str, str]
    """Step, or "steps" -> why it is not known."""
    assumptions: tuple[str, ...]
    """Sentences: what was taken for granted."""
    traffic: int
    """Requests that went through the model: those of all phases, whether they report anything or not."""
    not_compared: int
    """Measured requests that were sent, and are not in `steps`: their prompts or their cached tokens are not known."""
    exact: int
    """Requests that report just what was expected."""
    contributors: tuple[Contributor, ...]
    """Those with the largest differences, the largest first."""
    by_kind: tuple[Part, ...]
    by_warmth: tuple[Part, ...]
    by_turn: tuple[Part, ...]
    by_window: tuple[Part, ...]
    """By tenth of the time in which the measured requests were sent, from 0."""
    by_level: tuple[Part, ...]
    """By what stands in the prompts, in that order; empty if the run did not record it."""
    by_phase: tuple[Part, ...]
    """Of the requests of all phases that count as those of `steps` do: measure, whose steps those are, comes last."""


def waterfall(log: RequestLog, target: TargetRecord) -> Waterfall:
    """Serve the requests that `target` was sent again, under one restriction after the other."""
    cache = engine_cache(target, replica_names(log))
    expectation = expect_on_replicas(log, cache) if cache.replicas else expect(log.requests, cache)
    if cache.has_hidden_places:  # what is lost between them is not known, so nothing is taken away for it
        expectation = replace(expectation, found=expectation.kept)
    table = _table(log, expectation)
    measured = table[table["phase"] == "measure"]
    reporting = measured[measured["measured"].notna()]
    counted = reporting if len(reporting) else measured
    different = reporting[reporting["unexplained"] != 0]
    unknown = _unknown(cache, counted, reporting)
    of_phases = table[table["measured"].notna()] if len(reporting) else table
    return Waterfall(
        steps=summed(counted, unknown) if len(counted) else None,
        model=cache.name,
        caching_is_off=cache.is_off,
        unknown=unknown,
        assumptions=(*cache.assumptions, *silent_requests(log), *_other_lengths(log)),
        traffic=len(log.requests),
        not_compared=log.without_path + len(measured) - len(reporting),
        exact=len(reporting) - len(different),
        contributors=tuple(_contributors(different)),
        by_kind=parts(counted, "kind", unknown),
        by_warmth=parts(counted, "warmth", unknown),
        by_turn=parts(counted, "turn", unknown),
        by_window=parts(counted, "window", unknown),
        by_level=by_level(counted, unknown),
        by_phase=_by_phase(of_phases, unknown) if len(counted) else (),
    )


def _table(log: RequestLog, expectation: Expectation) -> pd.DataFrame:
    """One row for each request, with its steps."""
    rows = log.rows
    columns = ["request_id", "phase", "kind", "warmth", "session", "turn", "path_tokens", "path_levels"]
    table = rows[columns].copy()
    table["prompt_tokens"] = [request.prompt_tokens for request in log.requests]
    table["shareable"] = expectation.shareable
    table["granularity"] = table["shareable"] - expectation.in_blocks
    steps = [expectation.in_blocks, expectation.computed, expectation.kept, expectation.found]
    for name, before, after in zip(("in_flight", "capacity", "routing"), steps, steps[1:], strict=False):
        table[name] = 0 if before is None or after is None else _differences(before, after)
    table["expected"] = expectation.computed if expectation.found is None else expectation.found
    table["measured"] = rows["cached_tokens"]
    table["unexplained"] = table["expected"] - table["measured"]
    windows = time_windows(log)
    if windows is not None:
        table["window"] = windows.numbers
    return table


def _differences(before: Sequence[int], after: Sequence[int]) -> list[int]:
    return [one - other for one, other in zip(before, after, strict=True)]


def _unknown(cache: EngineCache, counted: pd.DataFrame, reporting: pd.DataFrame) -> dict[str, str]:
    if counted.empty:
        return {"steps": "no measured request was sent whose prompt is known"}
    unknown = {}
    if cache.model is None and not cache.is_off:
        unknown = dict.fromkeys(("capacity", "routing"), cache.unknown)
    elif cache.has_hidden_places:
        unknown["routing"] = "no answer tells which replica it came from"
    if reporting.empty:
        unknown |= dict.fromkeys(("measured", "unexplained"), "no request reports its cached tokens")
    return unknown


def _by_phase(rows: pd.DataFrame, unknown: Mapping[str, str]) -> tuple[Part, ...]:
    return tuple(sorted(parts(rows, "phase", unknown), key=lambda part: PHASES.index(str(part.key))))


def _contributors(rows: pd.DataFrame) -> list[Contributor]:
    largest = rows.loc[rows["unexplained"].abs().sort_values(ascending=False, kind="stable").index[:CONTRIBUTORS]]
    return [
        Contributor(
            request_id=str(row["request_id"]),
            session=plain(row["session"]),
            turn=plain(row["turn"]),
            expected=int(row["expected"]),
            measured=int(row["measured"]),
            unexplained=int(row["unexplained"]),
            from_token=min(int(row["expected"]), int(row["measured"])),
        )
        for _, row in largest.iterrows()
    ]


def _other_lengths(log: RequestLog) -> list[str]:
    counted, planned = log.rows["prompt_tokens"], log.rows["planned_prompt_tokens"]
    n = int((counted.notna() & (counted != planned)).sum())
    if not n:
        return []
    return [f"{n} prompts have another length by the engine than by the plan, which is what the model goes by."]
