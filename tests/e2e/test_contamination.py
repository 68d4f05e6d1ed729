"""A run says so if its cache was not cold, or if somebody else used the server; a clean run says nothing."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from rich.console import Console

from harness.analysis import Run, load
from harness.analysis.contamination import Contamination
from harness.analysis.report import render
from harness.analysis.summary import summarise
from harness.embedded.server import RunningServer
from tests.e2e.conftest import AGENT, CHAT, Locust, computed_tokens
from tests.waiting import wait_until


def found(run: Run) -> Contamination:
    assert run.manifest.state == "complete"
    return summarise(run.only_target()).contamination


def report(run: Run) -> str:
    out = io.StringIO()
    render([run], Console(file=out, width=400))
    return out.getvalue()


@pytest.mark.parametrize(("locustfile", "text"), [("agent_loop.py", AGENT), ("multi_round.py", CHAT)])
def test_texts_of_an_earlier_run_are_noticed_and_its_own_are_not(
    locustfile: str,
    text: str,
    llama_cpp_server: Callable[..., RunningServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    # Room for all that is sent, so that the first run's texts are still there.
    target, path = llama_cpp_server().url, scenario(text)
    runs = []
    for number in range(2):
        options = ("--users", 2, "--spawn-rate", 2, "--run-id", f"run-{number}")
        words = ("--headless", "--scenario", path, "--target", target, "--cold-start", "none", *options)
        code, output = start_locust(locustfile, *words).stop_after(tmp_path / "results", target, 25)
        assert code == 0, output
        runs.append(load(f"run-{number}", tmp_path / "results"))
    clean, again = map(found, runs)

    assert (clean.problems, clean.notes) == ((), ())
    assert clean.hits.compared == len(runs[0].measured)
    assert clean.counts.prompt_tokens == clean.counts.cached_tokens == 0
    (note,) = again.notes
    assert again.problems == ()
    assert again.hits.requests >= 2
    assert f"Note: {note}" in report(runs[1])
    assert "the cache was not cold" in note


def test_another_client_is_noticed(
    llama_cpp_server: Callable[..., RunningServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    server = llama_cpp_server()
    options = ("--headless", "--users", 2, "--spawn-rate", 2)
    locust = start_locust("agent_loop.py", "--scenario", scenario(AGENT), "--target", server.url, *options)
    wait_until(lambda: any((tmp_path / "results").glob("*/requests/part-master-0-*")))
    before = computed_tokens(server.url)
    wait_until(lambda: computed_tokens(server.url) > before + 500)
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "Who else is there? " * 50}], "max_tokens": 4}
    foreign = [requests.post(f"{server.url}/chat/completions", json=body, timeout=30).json() for _ in range(3)]
    locust.process.terminate()
    code, output = locust.wait()
    assert code == 0, output
    run = load("latest", tmp_path / "results")
    contamination = found(run)

    tokens = sum(answer["usage"]["prompt_tokens"] for answer in foreign)
    assert contamination.counts.prompt_tokens == tokens
    assert contamination.hits.requests == 0
    problem = next(problem for problem in contamination.problems if "counters" in problem)
    assert f"{tokens:,} prompt tokens" in problem
    assert f"Problem: contamination: {problem[:1].upper()}{problem[1:]}" in report(run)
