"""The summary of a run of any size: how long it takes, and how much memory.

    python -m tests.bench.big_run --requests 10000000 DIR     write a run of so many requests
    python -m tests.bench.big_run --measure DIR                seconds and memory of `kvswarm report` on it

A run of 10 million requests takes minutes to write and 3 GB of disk.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.engines.vllm import METRICS
from harness.record.manifest import Manifest, MetricNames, Phase, TargetRecord
from harness.record.run_directory import create
from harness.record.schema import HARNESS_HEALTH, SERVER_METRICS
from harness.record.writer import ROW_GROUP_ROWS
from tests.bench.big_rows import BLOCK, FLUSH_S, RUN_ID, SCENARIO, START_NS, TARGET, Truth, write_worker

SAMPLES = 2_000
"""In each scrape."""
STALLED = 2
"""Seconds of each worker in which the harness was the bottleneck."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="where runs are; the run's own directory is made in it")
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measure", action="store_true", help="measure the summary of the run that is there")
    parser.add_argument("options", nargs="*", help="of kvswarm report, behind --")
    asked = parser.parse_args()
    if asked.measure:
        return measure(asked.directory / RUN_ID, asked.options)
    began = time.monotonic()
    truth = write(asked.directory, asked.requests, asked.seconds, asked.workers, asked.seed)
    print(f"{truth.requests:,} requests in {asked.directory / RUN_ID}, written in {time.monotonic() - began:.0f} s")
    return 0


def measure(run: Path, options: list[str]) -> int:
    """Prints the seconds of the report, and the most memory that it had in RAM."""
    began = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-m", "harness.cli", "report", str(run), *options], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        return code
    cpu_s = usage.ru_utime + usage.ru_stime
    print(f"{time.monotonic() - began:.1f} s, {cpu_s:.1f} s of CPU time")
    print(f"{usage.ru_maxrss / 2**20:.2f} GiB at most")  # it has no processes of its own
    return 0


def write(base: Path, requests: int, seconds: int, workers: int, seed: int, samples: int = SAMPLES) -> Truth:
    """A run of one vLLM that forgets nothing; what its measured requests add up to."""
    directory = create(base, RUN_ID)
    folder = Path(directory.url)
    for table in ("requests", "server_metrics", "harness_health"):
        (folder / table).mkdir()
    shares = [requests // workers + (number < requests % workers) for number in range(workers)]
    manifest = _manifest(seconds)
    with ProcessPoolExecutor() as processes:
        written = list(
            processes.map(
                write_worker, [folder] * workers, range(workers), shares, [seconds] * workers, [seed] * workers
            )
        )
    for parts, _ in written:
        manifest.add_parts("requests", parts)
    truth = sum((truth for _, truth in written[1:]), written[0][1])
    manifest.add_parts("server_metrics", _write_metrics(folder, truth, seconds, samples))
    manifest.add_parts("harness_health", _write_health(folder, workers, seconds, seed))
    directory.write_manifest(manifest)
    return truth


def _manifest(seconds: int) -> Manifest:
    ends_ns = START_NS + seconds * 10**9
    identity = {
        "engine": "vllm", "model": "m", "version": "0.32.0", "granularity_tokens": BLOCK,
        "capacity_tokens": 2**40, "unknown": {}, "details": {},
    }  # fmt: skip
    return Manifest(
        kvswarm_version="0",
        run_id=RUN_ID,
        state="complete",
        stopped_by="run-time",
        started_ns=START_NS,
        ended_ns=ends_ns,
        options={"load": "closed"},
        scenario_name=SCENARIO,
        scenario={"kind": "multi-round"},
        targets=[
            TargetRecord(
                name=TARGET,
                target={"url": "http://127.0.0.1:8000/v1", "metrics_urls": ["http://127.0.0.1:8000/metrics"]},
                identity=identity,
                metrics=[MetricNames.model_validate(asdict(metric)) for metric in METRICS],
                advice={},
                lexicon={},
                cold_start="reset: the prefix cache was emptied",
            )
        ],
        versions={},
        phases=[Phase(phase="measure", targets=(TARGET,), start_ns=START_NS, end_ns=ends_ns)],
    )


def _write_metrics(folder: Path, truth: Truth, seconds: int, samples: int) -> list[tuple[str, int]]:
    """A scrape each second; the engine's own series follow the requests, the others fill the page."""
    running = (truth.begun - truth.ended).cumsum()
    series = {
        "vllm:prefix_cache_queries_total": truth.counted_prompt.cumsum(),
        "vllm:prefix_cache_hits_total": truth.counted_cached.cumsum(),
        "vllm:generation_tokens_total": truth.generated.cumsum(),
        "vllm:num_preemptions_total": np.zeros(seconds + 1),
        "vllm:num_requests_running": running,
        "vllm:num_requests_waiting": np.zeros(seconds + 1),
        "vllm:kv_cache_usage_perc": running / max(1, running.max()),
        "up": np.ones(seconds + 1),
        "scrape_duration_seconds": np.full(seconds + 1, 0.01),
    }
    others = samples - len(series)
    names = [*series, *(f"vllm:histogram_{number // 20}_bucket" for number in range(others))]
    gauges = {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"}
    kinds = ["gauge" if name in gauges or name[:5] != "vllm:" else "counter" for name in names]
    labels = [[("engine", "0"), ("model_name", "m"), ("le", str(number))] for number in range(samples)]
    labels = [pairs[:2] if name in series else pairs for name, pairs in zip(names, labels, strict=True)]
    parts = []
    for number, start in enumerate(range(0, seconds + 1, FLUSH_S)):
        times = np.arange(start, min(start + FLUSH_S, seconds + 1))
        n = len(times) * samples
        moments = [
            "warmup_end" if second == 0 else "after" if second == seconds else "periodic" for second in times.tolist()
        ]
        own = np.stack([np.asarray(values, np.float64)[times] for values in series.values()], axis=1)
        rest = np.multiply.outer(times.astype(np.float64), np.arange(1, others + 1))
        known = {
            "run_id": pa.repeat(RUN_ID, n),
            "t_ns": np.repeat(START_NS + times * 10**9, samples),
            "moment": np.repeat(np.array(moments, object), samples),
            "target": pa.repeat(TARGET, n),
            "name": names * len(times),
            "family": [name.removesuffix("_bucket").removesuffix("_total") for name in names] * len(times),
            "type": kinds * len(times),
            "labels": labels * len(times),
            "value": np.concatenate([own, rest], axis=1).ravel(),
            "reset": [None if kind == "gauge" or not second else False for second in times.tolist() for kind in kinds],
        }  # fmt: skip
        columns = [_column(known.get(field.name), field, n) for field in SERVER_METRICS]
        name = f"server_metrics/part-{number:05d}.parquet"
        _write(pa.Table.from_arrays(columns, schema=SERVER_METRICS), folder / name)
        parts.append((name, n))
    return parts


def _write_health(folder: Path, workers: int, seconds: int, seed: int) -> list[tuple[str, int]]:
    """One row for each second and worker; in some seconds the loop stood still."""
    rng = np.random.default_rng([seed, 2**20])
    parts = []
    for worker in range(workers):
        lag = rng.uniform(1, 20, seconds)
        lag[rng.choice(seconds, min(STALLED, seconds), replace=False)] = 400.0
        known = {
            "run_id": pa.repeat(RUN_ID, seconds),
            "worker": np.full(seconds, worker),
            "t_ns": START_NS + np.arange(seconds) * 10**9,
            "span_ms": np.full(seconds, 1_000.0),
            "loop_lag_p50_ms": rng.uniform(0.1, 1, seconds),
            "loop_lag_max_ms": lag,
            "cpu_share": rng.uniform(0.2, 0.6, seconds),
            **dict.fromkeys(("gc_pauses", "gc_pause_ms", "gc_longest_ms", "socket_errors"), np.zeros(seconds)),
        }
        columns = [_column(known.get(field.name), field, seconds) for field in HARNESS_HEALTH]
        name = f"harness_health/part-0-{worker:04d}-00000.parquet"
        _write(pa.Table.from_arrays(columns, schema=HARNESS_HEALTH), folder / name)
        parts.append((name, seconds))
    return parts


def _column(values: object, field: pa.Field, n: int) -> pa.Array:
    if values is None:
        return pa.nulls(n, field.type)
    if isinstance(values, pa.Array):
        return values.cast(field.type)
    return pa.array(values, type=field.type) if isinstance(values, list) else pa.array(values).cast(field.type)


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP_ROWS)


if __name__ == "__main__":
    sys.exit(main())
