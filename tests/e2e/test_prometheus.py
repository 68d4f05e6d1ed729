"""A run that reads its metrics from a Prometheus server, beside one that scrapes the same server itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from harness.analysis import load
from harness.analysis.summary import summarise
from harness.embedded.server import RunningServer
from tests.collector.real_prometheus import running_prometheus
from tests.e2e.conftest import AGENT, Locust


def test_both_ways_give_the_counts_of_the_requests(
    llama_cpp_server: Callable[..., RunningServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    server = llama_cpp_server()
    with running_prometheus(tmp_path, {"llm": [urlsplit(server.url).netloc]}) as prometheus:
        direct, through = tmp_path / "direct.yaml", tmp_path / "through.yaml"
        direct.write_text(f"url: {server.url}\n")
        through.write_text(f"url: {server.url}\nprometheus: {{url: '{prometheus}', selector: {{job: llm}}}}\n")
        words = ("--headless", "--users", 2, "--spawn-rate", 2, "--run-time", "5s")
        code, output = start_locust(
            "agent_loop.py", "--scenario", scenario(AGENT), "--target", f"{direct},{through}", *words
        ).wait(180)
    assert code == 0, output
    run = load("latest", tmp_path / "results")
    for target in run.by_target():
        counters = summarise(target).counters
        rows = target.measured
        assert (counters.cached_tokens, counters.prompt_tokens) == (rows.cached_tokens.sum(), rows.prompt_tokens.sum())
        assert counters.cached_tokens
    names = run.server_metrics[run.server_metrics.type == "counter"].groupby("target").name.unique()
    assert set(names["direct"]) == set(names["through"])
