"""How many independent requests some requests are worth that come in bunches."""

from __future__ import annotations

from collections.abc import Sequence

Bunch = tuple[int, int]
"""(requests that are beyond a limit, requests), of one session or of one stretch of time."""


def design_effect(bunches: Sequence[Bunch]) -> float:
    """Variance of the share that is beyond, as the bunches show it, over what it were if each request stood alone.

    With k of n beyond, p = k / n, and k_c of n_c in bunch c of C, the variance of p as a ratio of sums is
    C / (C - 1) sum (k_c - p n_c)^2 / n^2, and that of independent requests p (1 - p) / n (Kish, Survey Sampling, 1965).
    At least 1; 1 too if it cannot be told, as there is one bunch only, or none or all are beyond.
    """
    count, n = len(bunches), sum(of for _, of in bunches)
    k = sum(beyond for beyond, _ in bunches)
    if count < 2 or not 0 < k < n:
        return 1.0
    p = k / n
    spread = sum((beyond - p * of) ** 2 for beyond, of in bunches) * count / (count - 1)
    return max(1.0, spread / (n * p * (1 - p)))


def of_sessions(sessions: Sequence[Bunch]) -> float:
    """The design effect as if there had been one more session, of their mean length and beyond throughout.

    Where few requests are beyond, nothing is seen yet of how they bunch. With none at all this makes a session worth
    one request, which is right however much its requests depend on each other: that a session has one beyond is at
    least as likely as its share of them. The more are seen, the less the session that was put in matters.
    """
    if not sessions:
        return 1.0
    length = max(1, round(sum(of for _, of in sessions) / len(sessions)))
    return design_effect([*sessions, (length, length)])
