"""How often 95 % intervals hold the truth, and how often `kvswarm compare` finds what is there, or what is not.

    python -m tests.bench.compare_coverage            # a quarter of an hour; --pairs sets how many pairs are simulated

Pairs of runs of one workload are drawn at random (`tests/compare/tables.py`), the second with a TTFT that is a known
factor longer, so what each line should say is known. Each is simulated as sessions that have nothing in common, and
with users who all begin at once: their first turns take a time that they share, and which is another one in each run.
For each number of sessions it prints

- the share of the 95 % intervals that hold the truth, by quantile, over all lines of times, and of the hit rate, with
  how many of the intervals that were asked for were given;
- in what share of the pairs without a difference a line was found to be higher or lower (5 % are meant to be);
- in what share of the pairs with a TTFT of 1.05 times it was found, by the paired line and by the median;
- of the intervals that a report gives of one run's TTFT, the same. The truth is the median of many runs.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from harness.compare.effect import Effect
from harness.compare.measures import SHARES, compare_rows
from harness.compare.rows import Rows
from harness.statistics.by_session import quantiles_by_session
from tests.compare.tables import played, started_at_once

SESSIONS = (20, 50, 200, 2_000)
USERS = 16
SLOWER = 1.05
DRAWS = 500
TURNS = 3


def run(workload: int, chance: int, sessions: int, users: int, slower: float = 1.0) -> Rows:
    """`users`: so many begin at once; 0: nothing is shared."""
    table = played(workload, chance, sessions, TURNS, slower)
    return started_at_once(table, chance, users) if users else table


def held(sessions: int, seed: int, slower: float, is_paired: bool, users: int) -> list[Effect]:
    """The comparison of one pair."""
    first = run(seed, 1_000_000 + seed, sessions, users)
    second = run(seed, 2_000_000 + seed, sessions, users, slower)
    return compare_rows(first, second, is_paired=is_paired, number=DRAWS)


def kind(name: str) -> str:
    return next((part for part in ("p50", "p90", "p99", "paired", "hit_rate") if part in name), name)


def is_found(effect: Effect) -> bool:
    return effect.verdict in ("higher", "lower")


def simulate(sessions: int, pairs: int, is_paired: bool, users: int) -> str:
    """A line of the table."""
    holds: dict[str, list[bool | None]] = defaultdict(list)
    wrong, by_pair, by_median = [], [], []
    for seed in range(pairs):
        alike = held(sessions, seed, 1.0, is_paired, users)
        wrong.append(any(map(is_found, alike)))
        for effect in alike:
            if effect.name != "failures_diff":
                nothing = 0.0 if effect.kind == "difference" else 1.0
                holds[kind(effect.name)].append(holding(effect.low, effect.high, nothing))
        slower = {effect.name: effect for effect in held(sessions, pairs + seed, SLOWER, is_paired, users)}
        by_median.append(is_found(slower["ttft_p50_ratio"]))
        if is_paired:
            by_pair.append(is_found(slower["ttft_paired_ratio"]))
    return (
        f"{told(sessions, users)} {'paired' if is_paired else 'apart':<7} holds: {coverage(holds)}; found where "
        f"nothing is: {share(wrong)}; found of 5 %: paired {share(by_pair)}, median {share(by_median)}"
    )


def report(sessions: int, runs: int, users: int) -> str:
    """A line of the table of intervals of one run."""
    tables = [run(20_000 + seed, 3_000_000 + seed, sessions, users) for seed in range(runs)]
    truth = {
        name: np.median([np.quantile(one.column("ttft_ms"), level) for one in tables]) for name, level in SHARES.items()
    }
    holds: dict[str, list[bool | None]] = defaultdict(list)
    for one in tables:
        found = quantiles_by_session(one.column("ttft_ms"), one.root, tuple(SHARES.values()), DRAWS, one.stretch)
        for name, level in SHARES.items():
            holds[name].append(holding(found[level].low, found[level].high, float(truth[name])))
    return f"{told(sessions, users)} report  holds: {coverage(holds)}"


def told(sessions: int, users: int) -> str:
    return f"{sessions:>6} sessions, {f'{users} at once' if users else 'apart':<10}"


def holding(low: float | None, high: float | None, truth: float) -> bool | None:
    """None: there is no interval."""
    return None if low is None or high is None else low <= truth <= high


def coverage(holds: dict[str, list[bool | None]]) -> str:
    given = {name: [one for one in of if one is not None] for name, of in sorted(holds.items())}
    return "  ".join(f"{name} {share(of)} (given {len(of) / len(holds[name]):.0%})" for name, of in given.items())


def share(of: Sequence[bool]) -> str:
    return f"{sum(of) / len(of):.1%}" if of else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--sessions", type=int, nargs="*", default=SESSIONS)
    given = parser.parse_args()
    for sessions in given.sessions:
        for users in (0, USERS):
            print(report(sessions, given.pairs, users), flush=True)
            for is_paired in (True, False):
                print(simulate(sessions, given.pairs, is_paired, users), flush=True)


if __name__ == "__main__":
    main()
