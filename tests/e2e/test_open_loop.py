"""An open loop end to end: sessions arrive when the seed has it, on however many workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.analysis import Run, load
from harness.analysis.arrived import arrived
from harness.embedded.server import running_server
from harness.sim.options import SimOptions
from harness.workload.arrivals import arrival_times_s, parse_arrivals
from harness.workload.rate import parse_rate
from tests.e2e.conftest import Locust

SCENARIO = """
name: quick
kind: multi-round
system_tokens: 24
preamble_tokens: 24
rounds: 1
user_tokens: 12
output_tokens: 2
seed: 5
"""
RATE = "1s:20-60, 1s:40"
"""40 sessions are due in each of the two seconds, give or take; then nothing arrives any more."""


@pytest.fixture
def simulated() -> Iterator[str]:
    with running_server(SimOptions(manner="vllm", time_scale=20.0)) as server:
        yield server.url


def asked(run: Run) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """(session, turn, when due in ns from the load's start, content ids of the prompt) of all that was asked."""
    start_ns = min(phase.start_ns for phase in run.manifest.phases if phase.phase == "measure")
    rows = run.requests[run.requests.phase == "measure"]
    return sorted(zip(rows.session, rows.turn, rows.t_due - start_ns, map(tuple, rows.path), strict=True))


def test_any_number_of_workers_asks_the_same_at_the_same_times(
    simulated: str, scenario: Callable[[str], Path], start_locust: Callable[..., Locust], tmp_path: Path
) -> None:
    path = scenario(SCENARIO)
    words = ("--headless", "--scenario", path, "--target", simulated, "--cold-start", "none")
    load_words = ("--load", "open", "--rate", RATE, "--users", 60, "--run-time", "4s")
    # Both at the same time, which changes nothing in what they ask.
    started = {
        workers: start_locust("swarm.py", *words, *load_words, "--run-id", f"on-{workers}", workers=workers)
        for workers in (0, 2)
    }
    found = []
    for workers, locust in started.items():
        code, output = locust.wait()
        assert code == 0, output
        run = load(tmp_path / "results" / f"on-{workers}")
        assert run.problems == ()
        measured = run.requests[run.requests.phase == "measure"]
        assert set(measured.status) == {"ok"}
        assert set(measured.worker) == set(range(workers or 1))
        assert set(measured.blocked_ms) == {0.0}
        assert measured.late_ms.min() >= 0
        found.append(asked(run))
        summary = arrived(run.only_target())
        assert summary is not None
        assert (summary.sessions, summary.refused, summary.asked) == (len(measured), 0, 80.0)
    one, two = found
    assert one == two
    times_s = arrival_times_s(parse_arrivals("poisson"), parse_rate(RATE), seed=5)
    assert [due_ns for _, _, due_ns, _ in one] == [round(time_s * 1e9) for time_s in times_s]
