"""A trace that is replayed against a real server: lengths and hits are those that the trace's ids tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from harness.analysis import load
from harness.embedded.server import RunningServer
from harness.record.reader import open_run
from harness.traces.export import export_run
from harness.traces.reading import read_trace
from harness.workload.scenario import load_scenario
from harness.workload.sharing import achieved_sharing
from harness.workload.workload import Workload
from tests.e2e.conftest import Locust, SlowServer
from tests.workload.samples import shared_by_paths

TRACE = [
    (300, [1, 2, 3, 4, 5], 0),
    (256, [1, 2, 3, 4], 256),
    (320, [1, 2, 6, 7, 8], 128),
    (384, [1, 2, 6, 7, 8, 9], 320),
    (384, [1, 2, 6, 7, 8, 9], 384),
    (200, [10, 11, 12, 13], 0),
]
"""Tokens, ids of blocks of 64, and how many tokens the request has in common with the one before: 384 are all."""
SCENARIO = """
name: small-replay
kind: replay
trace: small.jsonl
block_tokens: 64
times: none
"""


def test_hits_are_those_of_the_trace(
    llama_cpp_server: Callable[..., RunningServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    # With one slot and no states kept aside, a request can reuse what it has in common with the one before it.
    server = llama_cpp_server(slots=1, cache_ram_mib=0)
    rows = [{"timestamp": 0, "input_length": tokens, "output_length": 4, "hash_ids": ids} for tokens, ids, _ in TRACE]
    (tmp_path / "small.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = scenario(SCENARIO)
    words = ("--scenario", path, "--target", server.url, "--headless", "--users", 1)
    code, output = start_locust("swarm.py", *words).stop_after(tmp_path / "results", server.url, 15, output_tokens=4)
    assert code == 0, output

    run = load("latest", tmp_path / "results")
    sent = run.measured.sort_values("t_send").to_dict("records")
    assert len(sent) > len(TRACE)
    assert {row["status"] for row in sent} == {"ok"}
    (record,) = run.manifest.targets
    template, words = record.lexicon["template"], record.lexicon["words"]
    head = template["head"]["user"] + template["opener_tokens"]
    around = head + template["tail"]["user"]
    for number, row in enumerate(sent):
        tokens, _, _ = TRACE[number % len(TRACE)]
        assert row["prompt_tokens"] == row["planned_prompt_tokens"] == tokens + around
        assert row["output_tokens"] == 4
    paths = [list(zip(row["path"].tolist(), row["path_tokens"].tolist(), strict=True)) for row in sent]
    for number, (before, after) in enumerate(pairwise(paths), start=1):
        row, (_, _, shared) = sent[number], TRACE[number % len(TRACE)]
        computed = 1  # the last token always is, even of a prompt that was just sent
        # To the token: what the texts of the next two blocks begin with by accident is known from their ids.
        expected = min(shared_by_paths(before, after, words), row["prompt_tokens"] - computed)
        assert row["cached_tokens"] == expected
        by_hand = row["prompt_tokens"] - computed if shared == 384 else head + shared
        assert 0 <= expected - by_hand <= 3

    (written,) = export_run(open_run("latest", tmp_path / "results"), tmp_path / "again.jsonl", 8)
    assert len(read_trace(written.path, mooncake_block_tokens=8).requests) == len(sent)
    again = SCENARIO.replace("small.jsonl", "again.jsonl").replace("64", "8")
    planned = Workload(load_scenario(str(scenario(again)), tmp_path), "n")
    one_lap = Workload(load_scenario(str(path), tmp_path), "n")
    # Of so few tokens the template's own and what is left after the full blocks are some percent.
    assert abs(achieved_sharing(planned, len(sent)) - achieved_sharing(one_lap, len(sent))) < 0.05


def test_requests_are_due_when_the_trace_has_them_and_what_waits_for_a_user_is_blocked(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    rows = [
        {"timestamp": at_ms, "input_length": 100, "output_length": 1, "hash_ids": [at_ms, at_ms + 1]}
        for at_ms in (0, 400, 5_000, 60_000)
    ]
    (tmp_path / "small.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = scenario(SCENARIO.replace("times: none", "times: trace"))
    server = slow_server(1.0)
    options = ("--headless", "--users", 1, "--run-time", "7s")
    code, output = start_locust("swarm.py", "--scenario", path, "--target", server.url, *options).wait()
    assert code == 0, output
    sent = load("latest", tmp_path / "results").measured.sort_values("t_send")
    # The fourth comes after the run's end: nobody sends it.
    assert [due - sent.t_due.iloc[0] for due in sent.t_due] == [0, 400_000_000, 5_000_000_000]
    assert (sent.t_send >= sent.t_due).all()
    # One user alone: the second request waits until the first, which takes a second, has its answer.
    assert sent.blocked_ms.iloc[1] > 500
    assert sent.blocked_ms.iloc[2] == 0
    assert ((sent.lag_ms - sent.blocked_ms - sent.late_ms).abs() < 1e-6).all()
