"""Where the hit rate went: from what requests shared to what the engine reported, step by step, in tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from harness.analysis.expected import Expectation, expect
from harness.analysis.expected_engines import EngineCache, engine_cache
from harness.analysis.request_log import RequestLog
from harness.record.manifest import TargetRecord

WINDOWS = 10
"""Parts of equal length into which the time from the first measured request to the last is divided."""
CONTRIBUTORS = 10
"""How many requests are named."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Sums over some requests, in tokens.

    shareable - granularity - in_flight - capacity - routing = expected, and expected - unexplained = measured, where a
    step that is not known (None) takes nothing away.
    """

    requests: int
    prompt_tokens: int
    """By plan."""
    shareable: int
    """What a cache without end would find that knew each request as soon as it was sent."""
    granularity: int
    """Lost to whole blocks or pages, and to the last token, which is always computed."""
    in_flight: int
    """Lost as it was still being computed."""
    capacity: int | None
    """Lost as it had been evicted."""
    routing: int | None
    """Lost as it was held by another slot or replica than the one that answered."""
    expected: int
    measured: int | None
    """As the engine reported; None: it did not."""
    unexplained: int | None
    """expected - measured: below 0 where the engine found more."""

    @property
    def losses(self) -> dict[str, int]:
        """The steps from shareable to measured that are known."""
        names = ("granularity", "in_flight", "capacity", "routing", "unexplained")
        return {name: loss for name in names if (loss := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class Part:
    """The steps of some of the requests."""

    key: str | int | None
    """Kind of session, warmth, number of the turn, or number of the window; None: belongs to no session."""
    steps: Steps


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


def waterfall(log: RequestLog, target: TargetRecord) -> Waterfall:
    """Serve the requests that `target` was sent again, under one restriction after the other."""
    cache = engine_cache(target)
    table = _table(log, expect(log.requests, cache))
    measured = table[table["phase"] == "measure"]
    reporting = measured[measured["measured"].notna()]
    counted = reporting if len(reporting) else measured
    different = reporting[reporting["unexplained"] != 0]
    unknown = _unknown(cache, counted, reporting)
    return Waterfall(
        steps=_steps(counted, unknown) if len(counted) else None,
        model=cache.name,
        unknown=unknown,
        assumptions=(*cache.assumptions, *_other_lengths(log)),
        traffic=len(log.requests),
        not_compared=log.without_path + len(measured) - len(reporting),
        exact=len(reporting) - len(different),
        contributors=tuple(_contributors(different)),
        by_kind=_parts(counted, "kind", unknown),
        by_warmth=_parts(counted, "warmth", unknown),
        by_turn=_parts(counted, "turn", unknown),
        by_window=_parts(counted, "window", unknown),
    )


def _table(log: RequestLog, expectation: Expectation) -> pd.DataFrame:
    """One row for each request, with its steps."""
    rows = log.rows
    table = rows[["request_id", "phase", "kind", "warmth", "session", "turn"]].copy()
    table["prompt_tokens"] = [request.prompt_tokens for request in log.requests]
    table["shareable"] = expectation.shareable
    table["granularity"] = table["shareable"] - expectation.in_blocks
    steps = [expectation.in_blocks, expectation.computed, expectation.kept, expectation.found]
    for name, before, after in zip(("in_flight", "capacity", "routing"), steps, steps[1:], strict=False):
        table[name] = 0 if before is None or after is None else _differences(before, after)
    table["expected"] = expectation.computed if expectation.found is None else expectation.found
    table["measured"] = rows["cached_tokens"]
    table["unexplained"] = table["expected"] - table["measured"]
    sent = rows.loc[rows["phase"] == "measure", "t_send"]
    if len(sent):
        table["window"] = (rows["t_send"] - sent.min()) * WINDOWS // (sent.max() - sent.min() + 1)
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


def _steps(rows: pd.DataFrame, unknown: Mapping[str, str]) -> Steps:
    names = [field.name for field in fields(Steps) if field.name != "requests"]
    sums: dict[str, Any] = {name: None if name in unknown else int(rows[name].sum()) for name in names}
    return Steps(requests=len(rows), **sums)


def _parts(rows: pd.DataFrame, column: str, unknown: Mapping[str, str]) -> tuple[Part, ...]:
    """By value of a column, in order."""
    if rows.empty:
        return ()
    return tuple(
        Part(_plain(key), _steps(some, unknown)) for key, some in rows.groupby(column, dropna=False, sort=True)
    )


def _contributors(rows: pd.DataFrame) -> list[Contributor]:
    largest = rows.loc[rows["unexplained"].abs().sort_values(ascending=False, kind="stable").index[:CONTRIBUTORS]]
    return [
        Contributor(
            request_id=str(row["request_id"]),
            session=_plain(row["session"]),
            turn=_plain(row["turn"]),
            expected=int(row["expected"]),
            measured=int(row["measured"]),
            unexplained=int(row["unexplained"]),
            from_token=min(int(row["expected"]), int(row["measured"])),
        )
        for _, row in largest.iterrows()
    ]


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if pd.isna(value):
        return None
    return value if isinstance(value, str) else int(value)


def _other_lengths(log: RequestLog) -> list[str]:
    counted, planned = log.rows["prompt_tokens"], log.rows["planned_prompt_tokens"]
    n = int((counted.notna() & (counted != planned)).sum())
    if not n:
        return []
    return [f"{n} prompts have another length by the engine than by the plan, which is what the model goes by."]
