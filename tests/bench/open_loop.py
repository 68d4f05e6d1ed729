"""Is the load what was asked for? `make bench` runs it.

Loads a simulated engine, whose clock is fast enough to be no limit, with an open loop of sessions of one short turn, by
worker processes. Prints how many sessions arrived beside how many were asked for, whether the gaps between them are of
the distribution (Kolmogorov-Smirnov test at 1 %), as they were due and as they were sent, and how late they were sent.
With --workers 1,2,4 it also says whether all of these made the same requests at the same times.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pandas as pd

from harness.analysis import Run, load
from harness.analysis.arrived import arrived
from harness.embedded.server import running_server
from harness.launch import Swarm, run_headless
from harness.sim.options import SimOptions
from harness.workload.arrivals import Arrivals, parse_arrivals
from tests.workload.gaps import CRITICAL, distance, exponential, gamma

FINEST_S = 1e-6
SCENARIO = """
name: one-short-turn
kind: multi-round
system_tokens: 24
preamble_tokens: 24
rounds: 1
user_tokens: 12
output_tokens: 4
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--arrivals", default="poisson")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--workers", default="2")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_server(SimOptions(manner="vllm", time_scale=20.0)) as server:
        scenario = Path(folder) / "one-short-turn.yaml"
        scenario.write_text(SCENARIO)
        runs = []
        for workers in map(int, asked.workers.split(",")):
            words = ("--load", "open", "--rate", f"{asked.rate:g}", "--arrivals", asked.arrivals)
            swarm = Swarm(
                str(scenario),
                server.url,
                workers=workers,
                run_time=f"{asked.seconds + 1}s",  # arrivals begin a second after the users
                results=folder,
                extra=(*words, "--cold-start", "none"),
            )
            if run_headless(swarm, f"on-{workers}"):
                return 1
            runs.append(load(Path(folder) / f"on-{workers}"))
            print(f"\n{workers} workers")
            tell(runs[-1], asked.rate, parse_arrivals(asked.arrivals))
        if len(runs) > 1:
            print(f"\nthe same requests at the same times: {'yes' if are_equal(runs) else 'NO'}")
    return 0


def tell(run: Run, rate: float, arrivals: Arrivals) -> None:
    rows = run.requests[run.requests["phase"] == "measure"]
    counted = arrived(run.only_target())
    assert counted is not None
    print(counted.sentence())
    if counted.asked:
        print(f"achieved / asked: {counted.sessions / counted.asked:.4f}")
    print(f"status: {rows['status'].value_counts().to_dict()}")
    for column in ("t_due", "t_send"):
        print(f"gaps of {column}: {verdict(gaps_s(rows[column].dropna()), rate, arrivals)}")
    late = rows["late_ms"].dropna()
    shown = {f"p{100 * share:g}": round(float(late.quantile(share)), 2) for share in (0.5, 0.9, 0.99, 0.999)}
    print(f"late_ms: {shown}, largest {late.max():.2f}, smallest {late.min():.3f}")
    for worker in run.manifest.workers:
        assert worker.cpu_s is not None
        assert worker.wall_s is not None
        print(f"worker {worker.index}: {worker.rows} requests, {100 * worker.cpu_s / worker.wall_s:.0f} % of a core")


def gaps_s(times_ns: pd.Series) -> list[float]:
    return [(later - earlier) / 1e9 for earlier, later in pairwise(sorted(times_ns.tolist()))]


def verdict(gaps: Sequence[float], rate: float, arrivals: Arrivals) -> str:
    if arrivals.kind == "constant":
        return f"{min(gaps) * 1e3:.3f} to {max(gaps) * 1e3:.3f} ms"
    cumulative: Callable[[float], float] = (
        exponential(rate) if arrivals.kind == "poisson" else gamma(1 / arrivals.cv**2, rate)
    )
    found = distance(gaps, cumulative, FINEST_S)
    word = "passes" if found < CRITICAL else "FAILS"
    return f"KS distance x sqrt(n) = {found:.3f}, {word} the test at 1 % ({CRITICAL})"


def are_equal(runs: Sequence[Run]) -> bool:
    """Up to the end of the shortest, whose arrivals end a moment before those of the others."""
    asked = [requests(run) for run in runs]
    until_ns = min(max(due_ns for _, _, due_ns, _ in each) for each in asked)
    cut = [sorted(request for request in each if request[2] <= until_ns) for each in asked]
    print("requests compared: " + ", ".join(f"{len(each):,}" for each in cut))
    return all(each == cut[0] for each in cut)


def requests(run: Run) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """(session, turn, t_due - start, path)."""
    rows = run.requests[run.requests["phase"] == "measure"]
    start_ns = min(phase.start_ns for phase in run.manifest.phases if phase.phase == "measure")
    return list(zip(rows["session"], rows["turn"], rows["t_due"] - start_ns, map(tuple, rows["path"]), strict=True))


if __name__ == "__main__":
    sys.exit(main())
