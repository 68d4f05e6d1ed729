"""Runs with several targets, and what the report says of the targets themselves."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from rich.console import Console

from harness.analysis import Run
from harness.analysis.report import as_json, render
from harness.record.manifest import MetricNames, Phase, Probe, StartUpCheck
from tests.analysis.rows import CACHED, PROMPT, Row, request, sample, scrape, target

MakeRun = Callable[..., Run]


def printed(runs: list[Run], width: int = 120) -> str:
    out = io.StringIO()
    render(runs, Console(file=out, width=width))
    return out.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def cells(text: str, *start: str) -> list[str]:
    """The cells of the first table row that begins with `start`, split at two or more blanks."""
    rows = ([cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines())
    return next(row[len(start) :] for row in rows if row[: len(start)] == list(start))


def check(verdict: str, sentence: str, *probes: Probe) -> StartUpCheck:
    return StartUpCheck(verdict=verdict, sentence=sentence, granularity_tokens=16, probes=probes)


def probe(name: str, **changes: Any) -> Probe:
    unknown = dict.fromkeys(("expected_cached_tokens", "usage_cached_tokens", "counter_cached_tokens", "ttft_ms"))
    return Probe(**{"name": name, "prompt_tokens": 1_504, **unknown, **changes})


def both_rows() -> list[Row]:
    """Target a serves all from its cache, target b nothing, and twice as slowly."""
    fast = {"target": "a", "cached_tokens": 90, "prompt_tokens": 100}
    slow = {"target": "b", "cached_tokens": 0, "prompt_tokens": 100}
    return [
        request(**fast, ttft_ms=10.0),
        request(**fast, ttft_ms=5.0, warmth="warm"),
        request(**slow, ttft_ms=20.0),
        request(**slow, ttft_ms=20.0, warmth="warm"),
    ]


def test_targets_stand_side_by_side_in_the_order_of_the_run(make_run: MakeRun) -> None:
    run = make_run(both_rows(), targets=[target("b"), target("a")])
    text = printed([run])

    assert "run run-1 (complete): scenario demo; 2 targets, one after the other" in text
    assert "  target 1 = b: e at http://b/v1, model m" in text
    assert "  target 2 = a: e at http://a/v1, model m" in text
    rates = [line.split()[4:6] for line in text.splitlines() if line.split()[1:2] == ["all"] and "%" in line]
    assert rates == [["0.0", "%"], ["90.0", "%"]]
    assert "target 1: warm TTFT is 1.00 of cold" in text
    assert "target 2: warm TTFT is 0.50 of cold" in text
    assert text.index("Target 1: how far to trust it") < text.index("Target 2: how far to trust it")


def test_targets_of_several_runs_are_numbered_through(make_run: MakeRun) -> None:
    two = make_run(both_rows(), targets=[target("a"), target("b")], together=True)
    text = printed([two, make_run([request(cached_tokens=5, prompt_tokens=10)])])

    assert "run run-1 (complete): scenario demo; 2 targets, at the same time" in text
    assert "run run-2 (complete): scenario demo; 1 target" in text
    assert "  target 3 = t: e at http://t/v1, model m" in text
    assert [line.split()[:2] for line in text.splitlines() if line.split()[1:2] == ["warm"]] == [
        ["1", "warm"],
        ["2", "warm"],
    ] * 2
    assert "Target 3: how far to trust it" in text


def test_the_json_lists_the_targets_of_each_run(make_run: MakeRun) -> None:
    two = make_run(both_rows(), targets=[target("a", check=check("works", "It works.", probe("cold"))), target("b")])
    first, second = json.loads(as_json([two, make_run([])]))["runs"]

    assert [(one["target"], one["url"]) for one in first["targets"]] == [("a", "http://a/v1"), ("b", "http://b/v1")]
    assert [one["hit_rate"]["rate"] for one in first["targets"]] == [0.9, 0.0]
    assert first["targets"][0]["check"]["probes"][0]["usage_cached_tokens"] is None
    assert first["targets"][1]["check"] is None
    assert [one["target"] for one in second["targets"]] == ["t"]


IDENTITY = {
    "engine": "vllm",
    "version": "0.33.0",
    "build": "g4ba787ec9",
    "model": "qwen",
    "model_path": "Qwen/Qwen3-8B",
    "adapter": "sql",
    "context_tokens": 32_768,
    "capacity_tokens": 412_160,
    "granularity_tokens": 1,
    "kv_dtype": None,
    "slots": None,
    "prefix_caching": True,
    "unknown": {"kv_dtype": "it tells only auto.", "cache_ram": "it keeps --cache-ram to itself"},
    "by_hand": ["capacity_tokens", "prefix_caching"],
}


def test_who_answered_is_told_with_what_was_given_by_hand(make_run: MakeRun) -> None:
    text = printed([make_run([], targets=[target(identity=IDENTITY, cold_start="reset: the cache was emptied")])])

    assert cells(text, "engine") == ["vllm"]
    assert cells(text, "version") == ["0.33.0 (build g4ba787ec9)"]
    assert cells(text, "model") == ["qwen (Qwen/Qwen3-8B, adapter sql)"]
    assert cells(text, "context") == ["32,768 tokens"]
    assert cells(text, "KV capacity") == ["412,160 tokens (by hand)"]
    assert cells(text, "granularity") == ["1 token"]
    assert cells(text, "prefix caching") == ["on (by hand)"]
    assert cells(text, "cold start") == ["reset: the cache was emptied"]


def test_what_is_not_known_of_it_has_its_reason_once_as_a_note(make_run: MakeRun) -> None:
    targets = [target("a", identity=IDENTITY), target("b", identity=IDENTITY)]
    text = printed([make_run([], targets=targets)])

    assert cells(text, "KV dtype") == ["- [1]", "- [1]"]
    assert cells(text, "slots") == ["- [2]", "- [2]"]
    assert cells(text, "not told") == ["cache_ram - [3]", "cache_ram - [3]"]
    assert text.count("it tells only auto") == 1
    assert "[1] it tells only auto.\n" in text.replace(" \n", "\n")
    assert "[2] the engine does not tell it." in text
    assert "[3] it keeps --cache-ram to itself." in text


def test_the_start_up_check_is_a_table_with_its_sentence(make_run: MakeRun) -> None:
    cold = probe("cold", expected_cached_tokens=0, allowance_tokens=7, usage_cached_tokens=3, ttft_ms=912.0)
    repeat = probe("repeat", expected_cached_tokens=1_488, usage_cached_tokens=1_488, counter_cached_tokens=1_488)
    text = printed([make_run([], targets=[target(check=check("works", "Blocks of 16 tokens.", cold, repeat))])])

    assert cells(text, "cold") == ["1,504", "0 to 7", "3", "-", "912"]
    assert cells(text, "repeat") == ["1,504", "1,488", "1,488", "1,488", "-"]
    assert "\nBlocks of 16 tokens." in text
    assert "start-up check: cached tokens of each probe" in text
    assert "Problem" not in text


def test_any_verdict_but_works_is_a_problem_near_the_top(make_run: MakeRun) -> None:
    targets = [target("a", check=check("works", "Fine.")), target("b", check=check("caching-off", "Turn it on."))]
    text = printed([make_run(both_rows(), targets=targets)])

    assert "Problem: target 2: start-up check: Turn it on." in text
    assert text.index("Problem: target 2") < text.index("Who answered")
    assert "Problem: target 1" not in text


def test_without_a_start_up_check_there_is_no_such_table(make_run: MakeRun) -> None:
    assert "tart-up check" not in printed([make_run([])])


def test_flags_that_turn_on_what_is_missing_are_printed(make_run: MakeRun) -> None:
    how = {"cached_tokens": "start it with --report", "metrics": "start it with --metrics"}
    absent = scrape(1, "warmup_end", {"up": 0.0}, error="answered 404")
    rows = [request(prompt_tokens=10), request(prompt_tokens=10, cached_tokens=1), request(status="timeout")]
    text = words(printed([make_run(rows, absent, targets=[target(advice=how)])]))

    assert "1 of 2 successful requests report no cached tokens: start it with --report" in text
    assert (
        "hit rate, counters - (no scrape brought any of the engine's metrics: answered 404; start it with --me" in text
    )


GAUGE = MetricNames(meaning="kv_usage", names=("usage",), kind="gauge", counts="share in use")
EXTERNAL = MetricNames(
    meaning="external_cached_tokens", names=("outside_total",), kind="counter", counts="from outside"
)


def test_the_servers_own_figures_stand_side_by_side(make_run: MakeRun) -> None:
    samples = [
        *scrape(1, "warmup_end", {"hits_total": 0, "queries_total": 0, "outside_total": 5}, target="a"),
        *scrape(2, "periodic", {"usage": 0.25}, target="a"),
        *scrape(3, "periodic", {"usage": 0.5}, target="a"),
        *scrape(4, "after", {"hits_total": 90, "queries_total": 200, "outside_total": 1_205}, target="a"),
        sample("up", 0.0, 4, "after", target="b", error="answered 404"),
    ]
    metrics = [CACHED, PROMPT, GAUGE, EXTERNAL]
    run = make_run(
        both_rows(),
        samples,
        targets=[target("a", metrics=metrics), target("b", metrics=[CACHED, PROMPT, GAUGE])],
        phases=[Phase(phase="measure", targets=("a", "b"), start_ns=2, end_ns=3)],
    )
    text = printed([run])

    notes = {line.split()[0]: line for line in text.splitlines() if line.startswith("[")}
    peak, outside = cells(text, "KV capacity in use, peak"), cells(text, "tokens from an external cache")
    assert (peak[0], outside[0]) == ("50.0 %", "1,200")
    assert cells(text, "KV capacity in use, mean")[0] == "37.5 %"
    assert "no scrape brought any of the engine's metrics: answered 404" in notes[peak[1].split()[1]]
    assert "e has no such metric" in notes[outside[1].split()[1]]
    assert "running requests" not in text
    assert "1,200 tokens more from an external cache" in text


def test_the_stretches_of_a_restarted_server_are_named_with_their_times(make_run: MakeRun) -> None:
    second = 1_000_000_000
    samples = [
        {**row, "reset": reset if row["name"] != "up" else None}
        for at, moment, hits, queries, reset in (
            (0, "warmup_end", 0, 0, False),
            (10, "periodic", 30, 100, False),
            (20, "periodic", 0, 0, True),
            (30, "after", 50, 100, False),
        )
        for row in scrape(at * second, moment, {"hits_total": hits, "queries_total": queries})
    ]
    text = words(printed([make_run([request(cached_tokens=1, prompt_tokens=2)], samples)]))
    between = "t was restarted between 00:00:10.0 and 00:00:20.0 UTC"

    assert f"hit rate, counters - ({between})" in text
    assert "00:00:00.0 to 00:00:10.0 30.0 %: 30 of 100 tokens" in text
    assert "00:00:20.0 to 00:00:30.0 50.0 %: 50 of 100 tokens" in text
    assert f"counters and requests cannot be compared: {between}" in text


def test_two_targets_fit_into_80_columns(make_run: MakeRun) -> None:
    targets = [target(name, identity=IDENTITY, cold_start="nonce: no earlier run sent these texts") for name in "ab"]
    text = printed([make_run(both_rows(), targets=targets)], width=80)

    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "…" not in text
