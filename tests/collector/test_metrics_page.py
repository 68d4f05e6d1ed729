from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.collector.metrics_page import Sample, parse, sums

PAGES = ["xllamacpp/metrics_after_warm", "vllm/07-metrics-after", "sglang/41-metrics-end"]


def page(fixtures: Path, name: str) -> str:
    return (fixtures / f"{name}.body.txt").read_text()


@pytest.mark.parametrize("name", PAGES)
def test_every_line_of_a_page_becomes_a_sample_of_the_same_name(fixtures: Path, name: str) -> None:
    text = page(fixtures, name)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    on_page = [(re.split(r"[{ ]", line)[0], str(float(line.rsplit(" ", 1)[1]))) for line in lines]
    assert [(sample.name, str(sample.value)) for sample in parse(text)] == on_page  # as text, since NaN is not NaN


@pytest.mark.parametrize("name", PAGES)
def test_every_sample_has_the_family_and_type_of_its_type_line(fixtures: Path, name: str) -> None:
    text = page(fixtures, name)
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    assert {sample.family: sample.type for sample in parse(text)} == types


def test_a_counter_keeps_its_name_with_and_without_total(fixtures: Path) -> None:
    samples = {sample.name: sample for sample in parse(page(fixtures, "xllamacpp/metrics_after_warm"))}
    assert samples["llamacpp:prompt_tokens_total"] == Sample(
        "llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_total", "counter", {}, 16931.0
    )
    assert samples["llamacpp:n_tokens_max"].family == "llamacpp:n_tokens_max"
    assert samples["llamacpp:n_tokens_max"].value == 1549.0


def test_labels_come_along(fixtures: Path) -> None:
    samples = parse(page(fixtures, "vllm/07-metrics-after"))
    [config] = [sample for sample in samples if sample.name == "vllm:cache_config_info"]
    assert config.labels["block_size"] == "32"
    assert config.labels["cache_dtype"] == "auto"
    by_source = {s.labels["source"]: s.value for s in samples if s.name == "vllm:prompt_tokens_by_source_total"}
    assert set(by_source) == {"local_compute", "local_cache_hit", "external_kv_transfer"}


def test_escaped_label_values_infinities_and_timestamps_are_read() -> None:
    text = 'a{b="x\\"y\\\\z\\n",c="é, }"} 1\na_bucket{le="+Inf"} +Inf\nd NaN 1700000000000\n'
    first, second, third = parse(text)
    assert first.labels == {"b": 'x"y\\z\n', "c": "é, }"}
    assert (second.labels, second.value) == ({"le": "+Inf"}, float("inf"))
    assert third.value != third.value
    assert first.type == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "<html>hello</html>",
        '{"status": "ok"}',
        "[]",
        "a{",
        'a{b="c"',
        'a{b="c"} x',
        "a{b=c} 1",
        "a{, ==} 1",
        "# TYPE a",
    ],
)
def test_what_is_no_metrics_page_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse(text)


def test_an_empty_page_has_no_samples() -> None:
    assert parse("") == []


def test_others_get_a_turn_after_every_metric(fixtures: Path) -> None:
    text = page(fixtures, "vllm/07-metrics-after")
    turns: list[None] = []
    parse(text, between_families=lambda: turns.append(None))
    assert len(turns) == text.count("# TYPE ")


@pytest.mark.parametrize(
    ("name", "family", "kind", "cumulative", "counts_work"),
    [
        ("vllm:prompt_tokens_total", "vllm:prompt_tokens_total", "counter", True, True),
        ("llamacpp:n_tokens_max", "llamacpp:n_tokens_max", "counter", True, True),
        ("sglang:scheduler_idle_seconds_total", "sglang:scheduler_idle_seconds_total", "counter", True, False),
        ("sglang:http_requests_total", "sglang:http_requests_total", "counter", True, False),
        ("process_cpu_seconds_total", "process_cpu_seconds_total", "counter", True, False),
        ("python_gc_collections_total", "python_gc_collections_total", "counter", True, False),
        ("vllm:ttft_bucket", "vllm:ttft", "histogram", True, False),
        ("vllm:ttft_count", "vllm:ttft", "histogram", True, False),
        ("vllm:ttft_sum", "vllm:ttft", "histogram", False, False),
        ("vllm:num_requests_running", "vllm:num_requests_running", "gauge", False, False),
    ],
)
def test_what_only_grows_and_what_counts_work(
    name: str, family: str, kind: str, cumulative: bool, counts_work: bool
) -> None:
    sample = Sample(name, family, kind, {}, 1.0)
    assert (sample.is_cumulative, sample.counts_work) == (cumulative, counts_work)


def test_sums_are_over_all_labels_of_a_name() -> None:
    assert sums(parse('a{b="1"} 2\na{b="2"} 3\nc 4\n')) == {"a": 5.0, "c": 4.0}
