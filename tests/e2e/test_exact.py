"""Rows and the engine's own counters tell the same story, to the token: no row is missing and none is double."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from harness.analysis import Run, load
from harness.embedded.server import RunningServer
from tests.e2e.conftest import AGENT, CHAT, Locust
from tests.waiting import wait_until


def counter_delta(run: Run, name: str) -> float:
    """Last value minus the one at the end of the warm-up, by hand."""
    metrics = run.server_metrics[run.server_metrics.name == name].sort_values("t_ns")
    return float(metrics.value.iloc[-1] - metrics[metrics.moment == "warmup_end"].value.iloc[-1])


def check_exact(run: Run) -> pd.DataFrame:
    rows = run.measured
    assert run.manifest.state == "complete"
    assert (rows.status == "ok").all()
    assert rows.request_id.is_unique
    assert rows.cached_tokens.notna().all()
    assert rows.cached_tokens.sum() == counter_delta(run, "llamacpp:prompt_tokens_cached_total")
    assert (rows.prompt_tokens - rows.cached_tokens).sum() == counter_delta(run, "llamacpp:prompt_tokens_total")
    assert rows.output_tokens.sum() == counter_delta(run, "llamacpp:tokens_predicted_total")
    assert (rows.prompt_tokens == rows.planned_prompt_tokens).all()
    assert (rows.output_tokens == rows.planned_output_tokens).all()
    return rows


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_equal_counters_with_caching_on(
    workers: int,
    llama_cpp: RunningServer,
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    options = ("--headless", "--users", 3, "--spawn-rate", 3)
    locust = start_locust(
        "agent_loop.py", "--scenario", scenario(AGENT), "--target", llama_cpp.url, *options, workers=workers
    )
    code, output = locust.stop_after(tmp_path / "results", llama_cpp.url, 40)
    assert code == 0, output
    run = load("latest", tmp_path / "results")
    rows = check_exact(run)
    warm = rows[rows.warmth == "warm"]
    # Each later step re-sends all of the one before, whose prompt and answer the engine still holds.
    assert warm.cached_tokens.sum() / warm.prompt_tokens.sum() > 0.8
    assert warm.ttft_ms.median() < rows[rows.warmth == "cold"].ttft_ms.median()
    assert sorted(rows.worker.unique()) == list(range(max(workers, 1)))
    # The workers share the sessions between them, without holes among those that were finished.
    assert set(rows.session % max(workers, 1)) == set(range(max(workers, 1)))
    assert rows.groupby(["session", "turn"]).size().max() == 1


def test_rows_equal_counters_with_caching_off(
    llama_cpp_server: Callable[..., RunningServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    server = llama_cpp_server(cache_prompt=False)
    options = ("--headless", "--users", 2, "--spawn-rate", 2)
    locust = start_locust("multi_round.py", "--scenario", scenario(CHAT), "--target", server.url, *options, workers=2)
    code, output = locust.stop_after(tmp_path / "results", server.url, 15)
    assert code == 0, output
    rows = check_exact(load("latest", tmp_path / "results"))
    assert (rows.cached_tokens == 0).all()


def test_metrics_are_scraped_at_the_borders_and_in_between(
    llama_cpp: RunningServer,
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    options = ("--headless", "--users", 1, "--run-time", "4s")
    locust = start_locust("multi_round.py", "--scenario", scenario(CHAT), "--target", llama_cpp.url, *options)
    assert locust.wait()[0] == 0
    metrics = load("latest", tmp_path / "results").server_metrics
    up = metrics[metrics.name == "up"]
    assert (up.value == 1).all()
    assert {"before", "check", "warmup_end", "periodic", "after"} == set(up.moment)
    assert (up.moment == "periodic").sum() >= 3
    assert up.t_ns.is_monotonic_increasing or up.t_ns.is_unique
    assert (metrics[metrics.name == "scrape_duration_seconds"].value > 0).all()


def test_server_metrics_of_a_longer_run_are_written_while_it_goes_on(
    llama_cpp: RunningServer,
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    options = ("--headless", "--users", 1, "--run-time", "60s")
    locust = start_locust("multi_round.py", "--scenario", scenario(CHAT), "--target", llama_cpp.url, *options)
    # Parts of the requests and of the metrics appear long before the end: a crash would not lose them.
    results = tmp_path / "results"
    tables = ("requests", "server_metrics")
    wait_until(lambda: all(any(results.glob(f"*/{table}/part-0-*.parquet")) for table in tables))
    assert locust.process.poll() is None
    locust.process.terminate()
    code, output = locust.wait()
    assert code == 0, output
    run = load("latest", results)
    assert len(run.manifest.parts.server_metrics) >= 2
    check_exact(run)
