"""A server that is killed and started again in the middle of a run: rows, metrics, report and run all say so."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from harness.analysis import load
from harness.analysis.summary import summarise
from harness.embedded.process import free_port
from harness.embedded.server import LlamaCppOptions, running_server
from tests.e2e.conftest import AGENT, Locust, computed_tokens
from tests.waiting import wait_until


def test_no_hit_rate_is_made_from_counters_that_began_again(
    tiny_model: Path, scenario: Callable[[str], Path], start_locust: Callable[..., Locust], tmp_path: Path
) -> None:
    options = LlamaCppOptions(model=tiny_model, port=free_port())
    words = ("--headless", "--users", 3, "--spawn-rate", 3, "--run-time", "60s")
    with running_server(options) as first:
        locust = start_locust("agent_loop.py", "--scenario", scenario(AGENT), "--target", first.url, *words)
        wait_until(lambda: any((tmp_path / "results").glob("*/requests/part-master-0-*")))
        wait_until(lambda: computed_tokens(first.url) > 4_000)
        os.kill(first.pid, signal.SIGKILL)
        first.process.wait(timeout=20)
        with running_server(options) as second:
            wait_until(lambda: computed_tokens(second.url) > 500)
            locust.process.send_signal(signal.SIGTERM)
            code, output = locust.wait()
    assert code == 3, output
    assert "was restarted during the run" in output
    run = load("latest", tmp_path / "results")
    assert run.manifest.state == "incomplete"
    assert any("was restarted during the run" in problem for problem in run.problems)
    # Rows: those in flight and those refused meanwhile have failed; before and after are good ones.
    failed = run.measured[run.measured.status != "ok"]
    assert set(failed.status) <= {"connect_error", "http_error", "stream_error", "truncated"}
    assert set(failed[failed.status == "http_error"].http_status) <= {503}  # while it loads its model
    assert failed.error.notna().all()
    ok = run.measured[run.measured.status == "ok"]
    assert ok.t_end.min() < failed.t_send.min() < ok.t_send.max()
    # Metrics: the first scrape of the new process is marked on every counter.
    counters = run.server_metrics[run.server_metrics.type == "counter"]
    marked = counters[counters.reset.fillna(False)]
    assert marked.t_ns.nunique() == 1
    summary = summarise(run.only_target())
    assert summary.counters.rate is None
    assert summary.counters.cached_tokens is None
    assert summary.counters.reason
    assert "restarted" in summary.counters.reason
    assert summary.agreement.cached.difference is None
