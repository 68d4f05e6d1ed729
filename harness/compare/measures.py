"""What is compared of two tables of requests: times by group, hit rates, failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.compare.clusters import Clusters, of_sessions, of_time
from harness.compare.effect import Effect, Question, effects, standard_errors
from harness.compare.rows import Bools, Rows, same_request
from harness.statistics.bootstrap import DRAWS, LEAST_SESSIONS, Floats, Ints, Ordered, Quantile, RatioOfSums

TIME_DRAWS = 200
"""They tell a standard error, and no percentiles."""
SHARES = {"p50": 0.50, "p90": 0.90, "p99": 0.99}
Group = Callable[[Rows], Bools]
Amount = Callable[[Rows], Floats]


def _all(rows: Rows) -> Bools:
    return np.ones(len(rows), dtype=bool)


def _one(rows: Rows) -> Floats:
    return np.ones(len(rows))


def _reporting(rows: Rows) -> Bools:
    return rows.reporting


def _cached(rows: Rows) -> Floats:
    return rows.cached_tokens


def _prompt(rows: Rows) -> Floats:
    return rows.prompt_tokens


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
    stretches of time are drawn as well, and where that makes an effect more uncertain, its interval is widened.
    """
    tables = (reference, other)
    by_session = of_sessions(*tables, is_paired)
    questions = list(_questions(*_numbered(tables, by_session), is_paired))
    errors = [
        standard_errors(list(_questions(*_numbered(tables, clusters), is_paired)), clusters.draws(TIME_DRAWS))
        for clusters in of_time(*tables, is_paired)
    ]
    return effects(questions, by_session.draws(number), by_session.sizes, errors)


@dataclass(frozen=True, slots=True)
class _Numbered:
    rows: Rows
    roots: Ints
    """Number of the session (or stretch of time) that is drawn, by request."""
    sessions: int


def _numbered(tables: tuple[Rows, Rows], clusters: Clusters) -> tuple[_Numbered, _Numbered]:
    return _Numbered(tables[0], *clusters.ours), _Numbered(tables[1], *clusters.theirs)


def _questions(reference: _Numbered, other: _Numbered, is_paired: bool) -> Iterator[Question]:
    if is_paired:
        for name in PAIRED:
            yield _same_request(name, TIMES[name][0], reference, other)
    for name, (column, group) in TIMES.items():
        yield from _times(name, column, group, (reference, other))
    yield _ratio("hit_rate", (reference, other), _reporting, _cached, _prompt)
    yield _ratio("hit_rate_warm", (reference, other), lambda rows: _reporting(rows) & ~rows.cold, _cached, _prompt)
    yield _ratio("failures", (reference, other), _all, lambda rows: (~rows.ok).astype(np.float64), _one)


def _same_request(name: str, column: str, reference: _Numbered, other: _Numbered) -> Question:
    """Each request against itself: what makes one slower than another, such as its length, is in neither."""
    ratios, places = same_request(reference.rows, other.rows, column)
    roots = other.roots[places]
    too_few = _too_few(roots, 0.5)
    return Question(
        name=f"{name}_paired_ratio",
        kind="median ratio",
        requests=(len(ratios), len(ratios)),
        reference=None,
        other=Quantile(Ordered.of(ratios, roots, other.sessions), 0.5) if len(ratios) else None,
        reason=f"{too_few} are too few for an interval" if too_few else "",
        interval=not too_few,
    )


def _times(name: str, column: str, group: Group, sides: tuple[_Numbered, _Numbered]) -> Iterator[Question]:
    def values(rows: Rows, with_failures: bool) -> Floats:
        times: Floats = np.where(rows.ok, getattr(rows, column), np.inf if with_failures else np.nan)
        times = np.where(rows.counted & group(rows), times, np.nan)
        return times

    has_failures = name in WITH_FAILURES and any((~side.rows.ok & group(side.rows)).any() for side in sides)
    views = [(FAILED if with_failures else "", with_failures) for with_failures in (False, True)[: 1 + has_failures]]
    found = {
        view: [Ordered.of(values(side.rows, with_failures), side.roots, side.sessions) for side in sides]
        for view, with_failures in views
    }
    for label, share in SHARES.items():
        for view in found:
            yield _quantiles(f"{name}_{label}_ratio{view}", share, found[view], counts=not view)


def _quantiles(name: str, share: float, sides: Sequence[Ordered], counts: bool) -> Question:
    statistics: list[Quantile | None] = []
    reasons = []
    for side, which in zip(sides, ("reference", "other side"), strict=True):
        roots = side.sessions
        statistics.append(Quantile(side, share) if len(roots) else None)
        if not len(roots):
            reasons.append(f"no request of the {which} has it")
        elif too_few := _too_few(roots, share):
            reasons.append(f"{too_few} of the {which} are too few for an interval")
    return Question(
        name=name,
        kind="ratio",
        requests=(len(sides[0].values), len(sides[1].values)),
        reference=statistics[0],
        other=statistics[1],
        reason="; ".join(reasons),
        interval=not reasons,
        counts=counts,
    )


def _too_few(roots: Ints, share: float) -> str:
    """What there is too little of: sessions, or requests beyond the quantile; empty: enough."""
    sessions, least = len(np.unique(roots)), round(1 / (1 - share))
    if sessions < LEAST_SESSIONS:
        return f"{sessions} sessions"
    return f"{len(roots)} requests" if len(roots) < least else ""


def _ratio(name: str, sides: tuple[_Numbered, _Numbered], group: Group, upper: Amount, lower: Amount) -> Question:
    statistics: list[RatioOfSums | None] = []
    reasons, sizes = [], []
    for side, which in zip(sides, ("reference", "other side"), strict=True):
        chosen = group(side.rows)
        rows, roots = side.rows.take(chosen), side.roots[chosen]
        sizes.append(len(rows))
        statistics.append(RatioOfSums(upper(rows), lower(rows), roots, side.sessions) if len(rows) else None)
        if not len(rows):
            reasons.append(f"no request of the {which} reports it")
        elif len(np.unique(roots)) < LEAST_SESSIONS:
            reasons.append(f"{len(np.unique(roots))} sessions of the {which} are too few for an interval")
    return Question(
        name=f"{name}_diff",
        kind="difference",
        requests=(sizes[0], sizes[1]),
        reference=statistics[0],
        other=statistics[1],
        reason="; ".join(reasons),
        interval=not reasons,
    )
