"""The waterfall of a real run against a real llama.cpp server: what it expects is what the server reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis import load
from harness.analysis.summary import summarise
from harness.embedded.server import RunningServer
from tests.e2e.conftest import AGENT, CHAT, Locust


@pytest.mark.parametrize(
    ("locustfile", "text"),
    [("agent_loop.py", AGENT), ("multi_round.py", CHAT)],
    ids=["live replies", "scripted replies"],
)
def test_every_request_of_one_user_is_answered_as_expected_to_the_token(
    locustfile: str,
    text: str,
    llama_cpp_server: Callable[..., RunningServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    server = llama_cpp_server(slots=2, cache_ram_mib=0)
    options = ("--headless", "--users", 1, "--run-time", "4s", "--target", server.url)
    code, output = start_locust(locustfile, "--scenario", scenario(text), *options).wait()
    assert code == 0, output

    run = load("latest", tmp_path / "results")
    fall = summarise(run.only_target()).waterfall
    assert fall.contributors == ()
    steps = fall.steps
    assert steps is not None
    assert (steps.unexplained, fall.exact) == (0, steps.requests)
    assert steps.expected == steps.measured == run.measured.cached_tokens.sum() > 1_000
    assert steps.requests == len(run.measured) > 10
    assert steps.shareable >= steps.expected
