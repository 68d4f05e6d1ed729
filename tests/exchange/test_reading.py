"""Result files of other tools: what of them is read, and what is said of a file that cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from harness.exchange.measured import Measured
from harness.exchange.reading import read_results
from tests.exchange.results import aiperf, guidellm, guidellm_benchmark, inference_perf, vllm_bench

Read = Callable[..., list[Measured]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """read(content, ...): of a file that holds the first, or one a line."""

    def from_file(*contents: Any) -> list[Measured]:
        file = tmp_path / "result.json"
        file.write_text("\n".join(json.dumps(content) for content in contents))
        return read_results(file)

    return from_file


def test_vllm_bench(read: Read) -> None:
    (found,) = read(vllm_bench())
    assert (found.tool, found.version, found.successful, found.failed) == ("vllm bench", None, 9, 1)
    assert found.times == {
        figure: {"mean": 10.0 * number, "p50": 20.0 * number, "p90": 30.0 * number, "p99": 40.0 * number}
        for number, figure in enumerate(("ttft", "tpot", "itl", "e2e"), start=1)
    }
    assert found.per_s == {"requests": 1.8, "output tokens": 18.0, "tokens": 198.0}
    assert (found.hit_rate, found.remarks) == (None, ())


def test_vllm_bench_with_several_results_in_a_file(read: Read) -> None:
    found = read(vllm_bench(), vllm_bench(completed=5))
    assert [one.successful for one in found] == [9, 5]
    assert [one.where.rpartition(", ")[2] for one in found] == ["line 1", "line 2"]


def test_what_vllm_bench_was_not_asked_for_is_not_there(read: Read) -> None:
    content = {key: value for key, value in vllm_bench().items() if "e2el" not in key and key != "failed"}
    (found,) = read(content)
    assert "e2e" not in found.times
    assert (found.failed, found.remarks) == (None, ())


def test_the_zeros_of_a_run_without_answers_are_no_times(read: Read) -> None:
    zeros = {key: 0.0 for key in vllm_bench() if key.endswith("_itl_ms")}
    (found,) = read(vllm_bench(**zeros))
    assert "itl" not in found.times
    assert found.remarks == ("itl is 0 throughout: vllm bench writes 0 where it has no value.",)


def test_guidellm_with_a_benchmark_for_each_load(read: Read) -> None:
    found = read(guidellm(guidellm_benchmark("synchronous"), guidellm_benchmark("throughput")))
    assert [one.where.rpartition(", ")[2] for one in found] == [
        "benchmark 1 of 2 (synchronous)",
        "benchmark 2 of 2 (throughput)",
    ]
    one = found[0]
    assert (one.tool, one.version, one.successful, one.failed) == ("guidellm", "0.8.1", 9, 3)
    assert one.times["ttft"] == {"mean": 25.0, "p50": 50.0, "p90": 100.0, "p95": 150.0, "p99": 200.0}
    assert one.times["tpot"]["p50"] == 12.0
    assert one.times["itl"]["p50"] == 8.0
    assert one.times["e2e"]["p50"] == 900.0  # 0.9 s
    assert one.per_s == {"requests": 2.0, "input tokens": 200.0, "output tokens": 20.0, "tokens": 220.0}


def test_aiperf(read: Read) -> None:
    (found,) = read(aiperf())
    assert (found.tool, found.version, found.successful, found.failed) == ("aiperf", "0.13.0", 9, 1)
    assert found.times["ttft"] == {"mean": 10.0, "p50": 20.0, "p90": 30.0, "p95": 40.0, "p99": 50.0}
    assert found.times["itl"]["mean"] == 2.0
    assert found.times["icl"]["mean"] == 2.5
    assert found.times["e2e"]["mean"] == 100.0  # 0.1 s
    assert "tpot" not in found.times
    assert found.per_s == {"requests": 3.0, "output tokens": 30.0, "good requests": 2.5}
    assert found.hit_rate == 0.625


def test_an_aiperf_run_that_did_not_end_well_says_so(read: Read) -> None:
    (found,) = read(aiperf(was_cancelled=True, is_complete=False, incomplete_reason="records stopped"))
    assert found.remarks == (
        "The run was cancelled before its end.",
        "The run is not complete: records stopped.",
    )


def test_inference_perf(read: Read) -> None:
    (found,) = read(inference_perf())
    assert (found.tool, found.version, found.successful, found.failed) == ("inference-perf", None, 9, 1)
    assert found.times["ttft"] == pytest.approx({"mean": 100.0, "p50": 200.0, "p90": 300.0, "p99": 500.0})
    by_figure = {figure: round(values["mean"], 6) for figure, values in found.times.items()}
    assert by_figure == {"ttft": 100.0, "tpot": 20.0, "ntpot": 30.0, "itl": 10.0, "e2e": 500.0}
    assert found.per_s == {"requests": 3.0, "input tokens": 300.0, "output tokens": 30.0, "tokens": 330.0}
    assert found.hit_rate == 0.5


def test_inference_perf_tells_what_it_sent_again_and_whose_count_n_is(read: Read) -> None:
    content = inference_perf(client_fallback_requests={"prompt": 0, "output": 3})
    content["retries"] = {"requests_retried": 2, "attempts": 5, "recovered": 1, "failed_after_retry": 1}
    (found,) = read(content)
    again, own = found.remarks
    assert again.startswith(
        "2 of its requests were sent again (5 times in all): their TTFT, NTPOT and E2E have in them"
    )
    assert own.startswith("for 3 of its requests the server gave no count of output tokens")
    (never,) = read(inference_perf(client_fallback_requests={"prompt": 0, "output": 0}))
    assert never.remarks == ()


def test_inference_perf_without_streaming_has_no_ttft(read: Read) -> None:
    latency = inference_perf()["successes"]["latency"] | {"time_to_first_token": None}
    (found,) = read(inference_perf(latency=latency, prompt_tokens=None, goodput_metrics={"request_goodput": 1.5}))
    assert "ttft" not in found.times
    assert found.hit_rate is None
    assert found.per_s["good requests"] == 1.5


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"some": "thing"}, "is no result file that kvswarm knows; it reads vllm bench serve --save-result, "),
        ([vllm_bench()], "holds JSON, but no object"),
        (guidellm(guidellm_benchmark(), version=1), "of GuideLLM 0.8.1 in format 1; kvswarm reads format 2"),
        (guidellm(), "is a report of GuideLLM without a benchmark"),
        (aiperf(schema_version="2.0"), "is of AIPerf 0.13.0 in schema 2.0; kvswarm reads schema 1.x"),
        (aiperf(request_count=None), "no summary of a run with answers; give profile_export_aiperf.json"),
        (aiperf(request_latency={"unit": "hours", "avg": 1}), "request_latency has the unit 'hours'"),
        (inference_perf(latency=None), "report of the server's metrics, or of no successful request"),
        (vllm_bench(p99_ttft_ms="slow"), "p99_ttft_ms is 'slow', not a number"),
        ({key: value for key, value in vllm_bench().items() if key != "output_throughput"}, "and a pooling model"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(read: Read, content: Any, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        read(content)
    assert sentence in str(raised.value)
    assert "result.json" in str(raised.value)


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    for name, content in (
        ("table.csv", b"metric,avg\nttft,1\n"),
        ("empty.json", b""),
        ("part.json.gz", b"\x1f\x8b\x08\x00"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"{name} is no"):
            read_results(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_results(tmp_path / "missing.json")
