"""What is compared of two tables of requests: times by group, hit rates, failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from harness.compare.clusters import Clusters, of_sessions, of_time
from harness.compare.effect import Answer, Effect, Question, answer, effects
from harness.compare.rows import Bools, Rows, same_request
from harness.statistics.bootstrap import DRAWS, LEAST_SESSIONS, Floats, Quantile, RatioOfSums
from harness.statistics.by_session import Estimate, difference, share_by_session
from harness.statistics.moments import TIME_DRAWS, too_few

SHARES = {"p50": 0.50, "p90": 0.90, "p99": 0.99}
Group = Callable[[Rows], Bools]
Tables = tuple[Rows, Rows]
"""The reference, and the other side."""
Line = Sequence[Question]
"""One question, of sessions first, and then of the same requests in other clusters."""


def _all(rows: Rows) -> Bools:
    return np.ones(len(rows), dtype=bool)


TIMES: dict[str, tuple[str, Group]] = {
    "ttft": ("ttft_ms", _all),
    "ttft_cold": ("ttft_ms", lambda rows: rows.cold),
    "ttft_warm": ("ttft_ms", lambda rows: ~rows.cold),
    "ttft_hit": ("ttft_ms", lambda rows: rows.hit),
    "ttft_miss": ("ttft_ms", lambda rows: rows.miss),
    "tpot": ("tpot_ms", _all),
    "e2e": ("e2e_ms", _all),
}
"""Name -> column, and whose it is of. hit and miss are what each side's own engine reports."""
PAIRED = ("ttft", "tpot", "e2e")
"""Also compared request by request, where both sides sent the same."""
WITH_FAILURES = ("ttft", "ttft_cold", "ttft_warm", "tpot", "e2e")
"""Of a failed request nobody knows whether it would have been a hit."""
FAILED = "+failed"
"""Behind the name of a time: with each failed request as infinitely slow."""


def compare_rows(reference: Rows, other: Rows, *, is_paired: bool, number: int = DRAWS) -> list[Effect]:
    """All effects of `other` against `reference`; `number` draws.

    `is_paired`: both tables have the same requests, so each session is drawn for both sides at once, and what is slow
    because it is long is so on both. Else the sessions of each side are drawn by themselves.

    Sessions that are played at the same time share a server, and what holds it up makes many of them slow at once. So
    stretches of time are drawn as well, and where that makes an effect more uncertain, its interval is widened; where
    all that it depends on happened in a few of them, there is none.
    """
    tables = (reference, other)
    clusterings = [of_sessions(*tables, is_paired), *of_time(*tables, is_paired)]
    by_session, *by_time = (list(one.draws(number if one is clusterings[0] else TIME_DRAWS)) for one in clusterings)
    answers = []
    # One line after the other, so that no more than the requests of one are in memory.
    for question, *others in _lines(tables, clusterings, is_paired):
        answers.append(answer(question, by_session, clusterings[0].sizes, list(zip(others, by_time, strict=True))))
    return effects(_in_order(answers))


def _in_order(answers: list[Answer]) -> list[Answer]:
    """Each time with failures behind the one without."""
    names = list(dict.fromkeys(one.name.removesuffix(FAILED) for one in answers))
    return sorted(answers, key=lambda one: names.index(one.name.removesuffix(FAILED)))


def _lines(tables: Tables, clusterings: Sequence[Clusters], is_paired: bool) -> Iterator[Line]:
    if is_paired:
        for name in PAIRED:
            yield _same_request(name, tables, clusterings)
    for column in dict.fromkeys(column for column, _ in TIMES.values()):
        for view in ("", FAILED):
            yield from _times(column, view, tables, clusterings)
    tokens = ("cached_tokens", "prompt_tokens")
    yield _ratio("hit_rate", *tokens, [rows.reporting for rows in tables], tables, clusterings)
    yield _ratio("hit_rate_warm", *tokens, [rows.reporting & ~rows.cold for rows in tables], tables, clusterings)
    first, *others = _ratio("failures", "failed", "one", [_all(rows) for rows in tables], tables, clusterings)
    yield [replace(first, least=difference(*map(_failed, tables))), *others]


def _failed(rows: Rows) -> Estimate:
    """Where nothing failed no draw differs, and yet some of all such requests may fail."""
    return share_by_session(~rows.ok, rows.root, rows.stretch)


def _same_request(name: str, tables: Tables, clusterings: Sequence[Clusters]) -> Line:
    """Each request against itself: what makes one slower than another, such as its length, is in neither."""
    ratios, places = same_request(*tables, TIMES[name][0])
    line = []
    for place, one in enumerate(clusterings):
        numbers, number = one.theirs
        other = Quantile(ratios, numbers[places], number, 0.5) if len(ratios) else None
        reason = too_few(other, moments=place > 0)
        line.append(
            Question(
                name=f"{name}_paired_ratio",
                kind="median ratio",
                requests=(len(ratios), len(ratios)),
                reference=None,
                other=other,
                reason=reason,
                interval=not reason,
            )
        )
    return line


def _times(column: str, view: str, tables: Tables, clusterings: Sequence[Clusters]) -> Iterator[Line]:
    """All times of a column, which is read once. `view`: empty, or `FAILED`."""
    groups = {name: group for name, (of, group) in TIMES.items() if of == column}
    if view:
        groups = {
            name: group for name, group in groups.items() if name in WITH_FAILURES and _some_failed(tables, group)
        }
    if not groups:
        return
    times = [np.where(rows.ok, rows.column(column), np.inf if view else np.nan) for rows in tables]
    for name, group in groups.items():
        which = [rows.counted & group(rows) for rows in tables]
        for label, share in SHARES.items():
            line = f"{name}_{label}_ratio{view}"
            yield [_quantiles(line, share, times, which, one, place > 0) for place, one in enumerate(clusterings)]


def _some_failed(tables: Tables, group: Group) -> bool:
    return any((~rows.ok & group(rows)).any() for rows in tables)


def _quantiles(
    name: str, share: float, times: Sequence[Floats], groups: Sequence[Bools], clusters: Clusters, moments: bool
) -> Question:
    statistics = [
        None if np.isnan(values[of]).all() else Quantile(values, numbers, number, share, of)
        for values, of, (numbers, number) in zip(times, groups, (clusters.ours, clusters.theirs), strict=True)
    ]
    reason = _no_interval(statistics, moments)
    ours, theirs = (0 if statistic is None else statistic.requests for statistic in statistics)
    return Question(
        name=name,
        kind="ratio",
        requests=(ours, theirs),
        reference=statistics[0],
        other=statistics[1],
        reason=reason,
        interval=not reason,
        counts=not name.endswith(FAILED),
    )


def _no_interval(statistics: Sequence[Quantile | None], moments: bool) -> str:
    """Why there is none of a percentile's ratio; empty: there is one."""
    named = list(zip(statistics, ("reference", "other side"), strict=True))
    if missing := [f"no request of the {which} has it" for statistic, which in named if statistic is None]:
        return "; ".join(missing)
    first, second = (too_few(statistic, moments=moments) for statistic in statistics)
    if first == second != "":
        return too_few(statistics[0], moments=moments, whose=" of each side")
    found = (too_few(statistic, moments=moments, whose=f" of the {which}") for statistic, which in named)
    return "; ".join(reason for reason in found if reason)


def _ratio(
    name: str, upper: str, lower: str, groups: Sequence[Bools], tables: Tables, clusterings: Sequence[Clusters]
) -> Line:
    reasons: list[str] = []
    statistics: list[Sequence[RatioOfSums | None]] = []
    for rows, of, which, place in zip(tables, groups, ("reference", "other side"), (0, 1), strict=True):
        clusters = [(one.ours, one.theirs)[place] for one in clusterings]
        sessions = np.count_nonzero(np.bincount(clusters[0][0][of]))
        if not sessions:
            reasons.append(f"no request of the {which} reports it")
            statistics.append([None for _ in clusters])
            continue
        if sessions < LEAST_SESSIONS:
            reasons.append(f"{sessions} sessions of the {which} are too few for an interval")
        above, below = (_amount(rows, amount)[of] for amount in (upper, lower))
        statistics.append([RatioOfSums(above, below, numbers[of], number) for numbers, number in clusters])
    requests = (int(groups[0].sum()), int(groups[1].sum()))
    return [
        Question(f"{name}_diff", "difference", requests, ours, theirs, "; ".join(reasons), not reasons)
        for ours, theirs in zip(*statistics, strict=True)
    ]


def _amount(rows: Rows, name: str) -> Floats:
    """What is summed of each request: a column, 1, or 1 where it failed."""
    if name == "one":
        return np.ones(len(rows))
    return (~rows.ok).astype(np.float64) if name == "failed" else rows.column(name)
