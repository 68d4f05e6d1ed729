"""How often noise is taken for a start that is not steady, and how often such a start is found.

    python -m tests.bench.steady_alarms            # some seconds; --runs sets how many series of each kind

Series of hit rates with noise of 5 points, which goes on from window to window by r, are drawn at random: level all the
time, or beginning at 31 % and then at 78 %, by a step, a ramp or an approach, or rising to the end.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from harness.analysis.steady import settle
from harness.analysis.steady_series import Series

Floats = npt.NDArray[np.float64]
NOISE = 0.05
LOW, HIGH = 0.31, 0.78


def shapes(windows: int) -> dict[str, Floats]:
    at = np.arange(windows) / windows
    return {
        "level": np.full(windows, HIGH),
        "step at 20 %": np.where(at < 0.2, LOW, HIGH),
        "ramp to 30 %": np.minimum(LOW + (HIGH - LOW) * at / 0.3, HIGH),
        "approach, 10 %": HIGH - (HIGH - LOW) * np.exp(-at / 0.1),
        "step at 70 %": np.where(at < 0.7, LOW, HIGH),
        "rising to the end": LOW + (HIGH - LOW) * at,
    }


def noise(windows: int, r: float, rng: np.random.Generator) -> Floats:
    values = rng.normal(0, NOISE, windows)
    for place in range(1, windows):
        values[place] = r * values[place - 1] + np.sqrt(1 - r * r) * values[place]
    return values


def main(runs: int) -> None:
    rng = np.random.default_rng(7)
    for windows in (40, 100):
        for r in (0.0, 0.5, 0.8, 0.9):
            print(f"{windows} windows, r = {r}")
            for name, shape in shapes(windows).items():
                series = (
                    Series("hit rate", "share", np.arange(1.0, windows + 1), shape + noise(windows, r, rng))
                    for _ in range(runs)
                )
                found = [settle(one).from_s for one in series]
                start, never = (sum(time == what for time in found) / runs for what in (0, None))
                times = [time / windows for time in found if time]
                place = f", from {np.median(times):.0%} on" if times else ""
                later = len(times) / runs
                print(f"  {name}: {start:.1%} at once, {later:.1%} later{place}, {never:.1%} never")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1_000)
    main(parser.parse_args().runs)
