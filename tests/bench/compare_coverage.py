"""How often the intervals of `kvswarm compare` hold the truth, and how often it finds what is there, or what is not.

    python -m tests.bench.compare_coverage            # a few minutes; --pairs sets how many pairs of runs are simulated

Pairs of runs of one workload are drawn at random (`tests/compare/tables.py`), the second with a TTFT that is a known
factor longer, so what each line should say is known. For each number of sessions it prints

- the share of the 95 % intervals that hold the truth, by quantile, over all lines of times, and of the hit rate;
- in what share of the pairs without a difference a line was found to be higher or lower (5 % are meant to be);
- in what share of the pairs with a TTFT of 1.05 times it was found, by the paired line and by the median.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence

from harness.compare.effect import Effect
from harness.compare.measures import compare_rows
from tests.compare.tables import played

SESSIONS = (20, 50, 200, 2_000)
SLOWER = 1.05
DRAWS = 500


def held(sessions: int, seed: int, slower: float, is_paired: bool) -> list[Effect]:
    """The comparison of one pair."""
    first, second = played(seed, 1_000_000 + seed, sessions), played(seed, 2_000_000 + seed, sessions, slower=slower)
    return compare_rows(first, second, is_paired=is_paired, number=DRAWS)


def kind(name: str) -> str:
    return next((part for part in ("p50", "p90", "p99", "paired", "hit_rate") if part in name), name)


def is_found(effect: Effect) -> bool:
    return effect.verdict in ("higher", "lower")


def simulate(sessions: int, pairs: int, is_paired: bool) -> str:
    """A line of the table."""
    holds: dict[str, list[bool]] = defaultdict(list)
    wrong, by_pair, by_median = [], [], []
    for seed in range(pairs):
        alike = held(sessions, seed, 1.0, is_paired)
        wrong.append(any(map(is_found, alike)))
        for effect in alike:
            if effect.low is not None and effect.high is not None and effect.name != "failures_diff":
                nothing = 0.0 if effect.kind == "difference" else 1.0
                holds[kind(effect.name)].append(effect.low <= nothing <= effect.high)
        slower = {effect.name: effect for effect in held(sessions, pairs + seed, SLOWER, is_paired)}
        by_median.append(is_found(slower["ttft_p50_ratio"]))
        if is_paired:
            by_pair.append(is_found(slower["ttft_paired_ratio"]))
    coverage = "  ".join(f"{name} {share(of)}" for name, of in sorted(holds.items()))
    return (
        f"{sessions:>6} {'paired' if is_paired else 'apart':<7} holds: {coverage}; found where nothing is: "
        f"{share(wrong)}; found of 5 %: paired {share(by_pair)}, median {share(by_median)}"
    )


def share(of: Sequence[bool]) -> str:
    return f"{sum(of) / len(of):.1%}" if of else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--sessions", type=int, nargs="*", default=SESSIONS)
    given = parser.parse_args()
    for sessions in given.sessions:
        for is_paired in (True, False):
            print(simulate(sessions, given.pairs, is_paired), flush=True)


if __name__ == "__main__":
    main()
