from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from rich.console import Console

from harness.analysis import Run
from harness.analysis.report import as_json, render
from tests.analysis.rows import Row, request, scrape, target

MakeRun = Callable[..., Run]

TIMES = {"ttft_ms": 100.0, "ttft_due_ms": 101.0, "tpot_ms": 8.0, "e2e_ms": 900.0, "late_ms": 0.5}
STAMPS = {
    "t_first": 2_000,
    "clock": "kernel",
    "stamp_error_ms": 0.01,
    "chunks": 64,
    "coalesced": 1,
    "clock_stepped": False,
}


def rows(cached: int | None) -> list[Row]:
    """100 cold turns of 1,000 tokens and 100 warm ones of 3,000, of which `cached` are hits."""
    of_both = TIMES | STAMPS | {"planned_prompt_tokens": 1_000, "prompt_tokens": 1_000, "cached_tokens": 0}
    if cached is None:
        of_both["cached_tokens"] = None
    of_warm = {"warmth": "warm", "ttft_ms": 21.0, "planned_prompt_tokens": 3_000, "prompt_tokens": 3_000}
    return [request(**of_both)] * 100 + [request(**of_both | of_warm | {"cached_tokens": cached})] * 100


def pages(cached: int) -> list[Row]:
    return [
        *scrape(1, "warmup_end", {"hits_total": 0, "queries_total": 0}),
        *scrape(2, "after", {"hits_total": cached, "queries_total": 400_000}),
    ]


def printed(runs: list[Run], width: int = 80) -> str:
    out = io.StringIO()
    render(runs, Console(file=out, width=width))
    return out.getvalue()


def cells(text: str, start: str) -> list[list[str]]:
    """The cells of all table rows whose first cells are `start`."""
    split = [line.split() for line in text.splitlines() if not line.startswith("cold start")]
    return [line[len(start.split()) :] for line in split if line[: len(start.split())] == start.split()]


def test_one_run_shows_latency_hit_rate_and_how_far_to_trust_them(make_run: MakeRun) -> None:
    text = printed([make_run(rows(cached=2_400), pages(240_000))], width=100)

    assert "run run-1 (complete): scenario demo; e at http://t/v1, model m" in " ".join(text.split())
    latency, hits = cells(text, "warm")[:2]
    #                   n     failed  TTFT p50, p90, p99     due    TPOT    E2E p50, p90
    assert latency == ["100", "0", "21.0", "21.0", "21.0", "101", "8.00", "900", "900"]
    #                prompt     cached           rate  told by         of ok  none    some  not
    assert hits == ["300,000", "240,000", "80.0", "%", "100", "100", "%", "0", "100", "0"]
    assert "warm TTFT is 0.21 of cold (medians 21.0 and 100 ms)" in text
    words = " ".join(text.split())
    assert "hit rate, per request 60.0 %: 240,000 of 400,000 tokens, reported by 200 of 200 requests" in words
    assert "hit rate, counters 60.0 %: 240,000 of 400,000 tokens, from warmup_end to after" in words
    assert "counters and requests exactly equal" in words
    assert "planned prompt lengths exact for 200 of 200 requests (100.0 %)" in words
    assert "arrival stamps kernel clock for 200 requests; error p99 0.01 ms; 1.6 % of the chunks coalesced" in words
    assert "requests not ok none" in words


def test_several_runs_stand_side_by_side(make_run: MakeRun) -> None:
    text = printed([make_run(rows(cached=2_400), pages(240_000)), make_run(rows(cached=0), pages(0))])

    assert "run 1 = run-1" in text
    assert "run 2 = run-2" in text
    rates = [line[2:4] for number in (1, 2) for line in cells(text, f"{number} all") if line[2] in ("60.0", "0.0")]
    assert rates == [["60.0", "%"], ["0.0", "%"]]
    lines = [line.split()[:2] for line in text.splitlines()]
    first = lines.index(["1", "cold"])
    assert lines[first : first + 6] == [
        ["1", "cold"],
        ["2", "cold"],
        ["1", "warm"],
        ["2", "warm"],
        ["1", "all"],
        ["2", "all"],
    ]
    assert "Run 2: how far to trust it" in text


def test_unknown_is_a_dash_with_its_reason_and_never_zero(make_run: MakeRun) -> None:
    unreported = [row | {"tpot_ms": None} for row in rows(cached=None)]
    text = printed([make_run(unreported, targets=[target(metrics=[])])])

    latency, hits = cells(text, "all")
    assert latency[6] == "-"
    assert hits[:3] == ["-", "-", "-"]
    assert hits[-3:] == ["0", "0", "200"]
    words = " ".join(text.split())
    assert "- as hit rate: no request of the row reports both cached and prompt tokens; that is not 0." in words
    assert "- as TPOT: no answer has two or more output tokens with a known count." in words
    assert "hit rate, counters - (kvswarm knows no metrics of e)" in words
    assert "hit rate, per request - (none of 200 requests reports both cached and prompt tokens)" in words


def test_failures_get_a_row_of_their_own(make_run: MakeRun) -> None:
    failed = [request(status="timeout"), request(status="http_error"), request(status="cancelled")]
    text = printed([make_run(rows(cached=1) + failed)])

    assert cells(text, "cold")[0][:2] == ["100", "2"]
    # Of 102 values p50 has rank 50.5, p90 rank 90.9, p99 rank 99.99: only the last one meets a failure.
    assert cells(text, "+failed")[0] == ["100", "100", "inf", "101", "8.00", "900", "900"]
    assert "+failed: the row above with each failed request as infinitely slow" in text
    assert "requests not ok 1 cancelled, 1 http_error, 1 timeout" in " ".join(text.split())


def test_a_rough_99th_percentile_is_marked(make_run: MakeRun) -> None:
    exact, rough = printed([make_run(rows(cached=1))]), printed([make_run(rows(cached=1)[:99])])

    assert "*" not in exact
    assert cells(rough, "cold")[0][4] == "100*"
    assert "* of fewer than 100 values" in rough


def test_chunks_that_were_taken_for_tokens_are_told(make_run: MakeRun) -> None:
    by_events = [request(output_tokens_source="events"), request(output_tokens_source="usage")]

    assert "output tokens one a chunk for 1 requests" in " ".join(printed([make_run(by_events)]).split())
    assert "one a chunk" not in printed([make_run(rows(cached=1))])


def test_problems_and_notes_are_told_as_they_are_written(make_run: MakeRun) -> None:
    run = make_run(rows(cached=1), problems=["worker 1 [of 2] was lost"], notes=["all well"], state="incomplete")

    assert "Note: all well" in printed([run])
    assert "Problem: worker 1 [of 2] was lost" in printed([run])
    assert "(incomplete)" in printed([run])
    assert printed([run]).index("Problem: worker 1") < printed([run]).index("Who answered")
    assert "Note of run-1: all well" in printed([run, run])
    assert "Problem of run-1: worker 1 [of 2] was lost" in printed([run, run])


def test_a_run_without_measured_requests_prints(make_run: MakeRun) -> None:
    assert "no measured requests" in " ".join(printed([make_run([])]).split())


def test_even_large_numbers_fit_into_80_columns(make_run: MakeRun) -> None:
    large = dict.fromkeys(TIMES, 98_765.4)
    many = [request(**STAMPS | large | {"prompt_tokens": 400_000, "cached_tokens": 399_999})] * 100_000
    run = make_run([*many, request(status="timeout")])
    text = printed([run, run], width=80)

    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert "…" not in text
    latency, hits = cells(text, "1 all")
    assert latency == ["100,000", "1", *["98,765"] * 7]
    assert hits == ["40,000.0", "M", "39,999.9", "M", ">99.9", "%", "100,000", "100", "%", "0", "100,000", "1"]


PERCENTILES = {"n", "p50", "p90", "p99", "p99_is_rough"}
HIT_RATE = {"rate", "cached_tokens", "prompt_tokens", "requests", "reporting", "ok", "ok_reporting"} | {
    "ok_cached_unknown",
    "cached_unknown",
    "cached_none",
    "cached_some",
}
COMPARISON = {"counters", "requests", "unknown_requests", "difference", "rounding"}


def test_the_keys_of_the_json_are_stable(make_run: MakeRun) -> None:
    (whole,) = json.loads(as_json([make_run([*rows(cached=1), request(status="timeout")], pages(1))]))["runs"]

    assert set(whole) == {"run_id", "state", "scenario", "together", "targets", "problems", "notes"}
    (run,) = whole["targets"]
    assert set(run) == {
        "target", "url", "identity", "cold_start", "check", "groups", "warm_to_cold", "hit_rate", "counters", "server",
        "agreement", "contamination", "herds", "waterfall", "working_set", "achieved", "coverage", "arrived",
        "throughput", "planned_lengths", "stamps", "health", "certainty", "chunks_counted", "advice", "problems",
    }  # fmt: skip
    assert set(run["health"]) == {
        "seconds", "marked", "requests", "measured", "left_out", "loop_lag_max_ms", "cpu_share_max", "socket_errors",
    }  # fmt: skip
    first = run["groups"][0]
    assert set(first) == {
        "kind", "scenario", "warmth", "requests", "failed", "by_status", "times", "times_with_failures", "hit_rate",
    }  # fmt: skip
    assert set(first["times"]) == set(first["times_with_failures"]) == {"ttft", "ttft_due", "tpot", "e2e"}
    assert set(first["times"]["ttft"]) == PERCENTILES
    assert set(first["hit_rate"]) == set(run["hit_rate"]) == HIT_RATE
    assert set(run["warm_to_cold"][0]) == {"kind", "scenario", "ratio", "warm_ttft_ms", "cold_ttft_ms"}
    counters = {"rate", "cached_tokens", "prompt_tokens", "since", "since_ns", "reason", "stretches"} | {
        "cached_rounding",
        "prompt_rounding",
    }
    assert set(run["counters"]) == counters
    assert set(run["server"]) == {
        "generated_tokens", "running_requests", "waiting_requests", "kv_usage", "preemptions", "evicted_tokens",
        "external_cached_tokens",
    }  # fmt: skip
    assert set(run["agreement"]) == {"requests", "cached", "prompt", "external_cached_tokens", "reason"}
    assert set(run["agreement"]["cached"]) == set(run["agreement"]["prompt"]) == COMPARISON
    assert set(run["planned_lengths"]) == {"compared", "exact", "largest_difference_tokens"}
    assert set(run["stamps"]) == {"by_clock", "error_ms", "coalesced_share", "clock_steps", "late_ms"}


def test_the_json_has_null_for_unknown_and_a_text_for_infinity(make_run: MakeRun) -> None:
    def no_constant(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    text = as_json([make_run([request(), request(status="timeout")])])
    (run,) = json.loads(text, parse_constant=no_constant)["runs"][0]["targets"]
    cold = run["groups"][0]

    assert cold["times"]["ttft"]["p50"] is None
    assert cold["times_with_failures"]["ttft"]["p50"] == "inf"
    assert run["hit_rate"]["rate"] is None
    assert run["counters"]["rate"] is None
