"""How far is the TTFT of a Locust worker from the truth, and what does an event cost? `make bench` runs it.

Starts the metronome on one core and Locust (master and one worker) on another, holds every request's `ttft_ms` against
what the server knows, first wave included, and prints percentiles of the error and the worker's CPU time per SSE event.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import analysis
from harness.embedded.process import free_port

HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=1024)
    parser.add_argument("--run-time", default="20s")
    parser.add_argument("--itl-ms", type=float, default=25)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        log, port = Path(folder) / "truth.jsonl", free_port()
        server = subprocess.Popen(
            [sys.executable, HERE / "metronome.py", "--port", str(port), "--log", log, "--itl-ms", str(options.itl_ms)],
            preexec_fn=lambda: os.sched_setaffinity(0, {cores[-1]}),
        )
        try:
            time.sleep(1)
            run_locust(port, options.streams, options.run_time, folder, cores[0])
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
        return compare(folder, log, options.streams)


def run_locust(port: int, streams: int, run_time: str, results: str, core: int) -> None:
    command = [
        *(sys.executable, "-m", "harness.cli", "run", str(HERE / "one-turn.yaml")),
        *("--target", f"http://127.0.0.1:{port}/v1", "--users", str(streams), "--run-time", run_time),
        *("--workers", "1", "--results", results, "--spawn-rate", str(streams)),
    ]
    subprocess.run(command, check=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))


def compare(results: str, log: Path, streams: int) -> int:
    truth = {record["id"]: record for record in map(json.loads, log.read_text().splitlines())}
    run = analysis.load("latest", results)
    rows = run.requests[(run.requests.phase == "measure") & (run.requests.status == "ok")]
    known = rows[rows.request_id.isin(truth)]
    true_ms = known.request_id.map(lambda key: (truth[key]["first_ns"] - truth[key]["arrived_ns"]) / 1e6)
    error = (known.ttft_ms - true_ms).abs()
    first_wave = error[known.session < streams]
    worker = run.manifest.workers[0]
    assert worker.cpu_s is not None
    assert worker.wall_s is not None
    events = int(rows.chunks.sum()) + 3 * len(rows)  # the role, the usage and [DONE] are events too
    print(f"{len(known)} of {len(rows)} requests matched, {streams} streams, {events / worker.wall_s:,.0f} events/s")
    for name, values in (("all", error), ("first wave", first_wave)):
        p50, p99, worst = values.quantile(0.5), values.quantile(0.99), values.max()
        print(f"|TTFT - truth|, {name}: p50 {p50:.3f} ms, p99 {p99:.3f} ms, max {worst:.3f} ms")
    cost_us, share = worker.cpu_s / events * 1e6, worker.cpu_s / worker.wall_s
    print(f"CPU of the worker: {cost_us:.1f} us an event, {share:.0%} of a core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
