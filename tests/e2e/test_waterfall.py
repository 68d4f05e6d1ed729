"""The waterfall of a real run against a real llama.cpp server: what it expects is what the server reports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis import load
from harness.analysis.summary import summarise
from harness.embedded.server import RunningServer
from tests.e2e.conftest import AGENT, CHAT, Locust

TREE = """
sharing:
  - {name: platform, fan_out: 1, tokens: 40}
  - {name: tenant, fan_out: 2, tokens: 60, tenant: true}
"""


@pytest.mark.parametrize(
    ("locustfile", "text", "levels"),
    [
        (
            "agent_loop.py",
            AGENT,
            ["system prompt", "tool schemas", "user message", "earlier reply"],
        ),
        ("multi_round.py", CHAT + TREE, ["platform", "tenant", "system prompt", "user preamble", "user message"]),
    ],
    ids=["live replies", "scripted replies"],
)
def test_every_request_of_one_user_is_answered_as_expected_to_the_token(
    locustfile: str,
    text: str,
    levels: list[str],
    llama_cpp_server: Callable[..., RunningServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    server = llama_cpp_server(slots=2, cache_ram_mib=0)
    options = ("--headless", "--users", 1, "--target", server.url)
    code, output = start_locust(locustfile, "--scenario", scenario(text), *options).stop_after(
        tmp_path / "results", server.url, 25
    )
    assert code == 0, output

    run = load("latest", tmp_path / "results")
    summary = summarise(run.only_target())
    fall = summary.waterfall
    assert fall.contributors == ()
    steps = fall.steps
    assert steps is not None
    assert (steps.unexplained, fall.exact) == (0, steps.requests)
    assert steps.expected == steps.measured == run.measured.cached_tokens.sum() > 1_000
    assert steps.requests == len(run.measured) > 10
    assert steps.shareable >= steps.expected

    by_level = {part.key: part.steps for part in fall.by_level}
    assert list(by_level)[: len(levels) + 1] == ["chat template", *levels]
    assert sum(part.measured or 0 for part in by_level.values()) == steps.measured
    assert [part.unexplained for part in by_level.values()] == [0] * len(by_level)
    assert by_level[levels[0]].requests == steps.requests
    assert all(part.steps.unexplained == 0 for part in fall.by_phase)
    assert max(window.working_set_tokens for window in summary.working_set) > 100
