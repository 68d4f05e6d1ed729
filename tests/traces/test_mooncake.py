from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cache.base import Prompt
from harness.cache.reuse_distance import reuse_distances
from harness.traces.mooncake import write_mooncake
from harness.traces.reading import read_trace
from harness.traces.request import TraceRequest
from tests.traces.written import MOONCAKE, lines

prompts = st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 40)), min_size=1, max_size=5)


def test_a_line_is_a_request(tmp_path: Path) -> None:
    trace = read_trace(lines(tmp_path / "t.jsonl", MOONCAKE))
    assert trace.block_tokens == 512
    assert [request.time_s for request in trace.requests] == [0, 1.5, 1.5]
    assert [request.output_tokens for request in trace.requests] == [5, 7, 9]
    assert list(trace.requests[0].prompt) == [(0, 512), (1, 512), (2, 76)]
    assert list(trace.requests[1].prompt) == [(0, 512), (1, 512)]
    assert [request.session for request in trace.requests] == [None] * 3


def test_other_block_sizes_can_be_told(tmp_path: Path) -> None:
    row = {"timestamp": 0, "input_length": 40, "output_length": 1, "hash_ids": [7, 8, 9]}
    trace = read_trace(lines(tmp_path / "t.jsonl", [row]), mooncake_block_tokens=16)
    assert list(trace.requests[0].prompt) == [(7, 16), (8, 16), (9, 8)]


def test_null_is_not_known(tmp_path: Path) -> None:
    row = {"timestamp": None, "input_length": 40, "output_length": None, "hash_ids": [7], "session_id": "a"}
    (request,) = read_trace(lines(tmp_path / "t.jsonl", [row])).requests
    assert request.time_s is None
    assert request.output_tokens is None
    assert request.session == "a"


@given(st.lists(prompts, min_size=1, max_size=8), st.integers(1, 20))
@settings(max_examples=100, deadline=None)
def test_what_is_written_shares_what_the_requests_shared(
    tmp_path_factory: pytest.TempPathFactory, requests: list[Prompt], block_tokens: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "written.jsonl"
    written = [TraceRequest(number / 4, prompt, 3, f"s{number % 2}") for number, prompt in enumerate(requests)]
    write_mooncake(path, written, block_tokens)
    read = read_trace(path, mooncake_block_tokens=block_tokens).requests
    for capacity in (block_tokens, 5 * block_tokens, math.inf):
        before = reuse_distances(requests, block_tokens).hit_tokens(capacity)
        assert reuse_distances([request.prompt for request in read], block_tokens).hit_tokens(capacity) == before
    for one, other in zip(read, written, strict=True):
        assert one.prompt_tokens == other.prompt_tokens
        assert (one.time_s, one.output_tokens, one.session) == (other.time_s, other.output_tokens, other.session)


def test_a_mooncake_file_is_written_as_it_was_read(tmp_path: Path) -> None:
    first = lines(tmp_path / "first.jsonl", MOONCAKE)
    write_mooncake(tmp_path / "second.jsonl", read_trace(first).requests)
    again = (tmp_path / "second.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in again] == MOONCAKE


def test_equal_prompts_share_the_partial_block_too(tmp_path: Path) -> None:
    requests = [TraceRequest(None, [(5, 10)], None), TraceRequest(None, [(5, 10)], None)]
    write_mooncake(tmp_path / "t.jsonl", requests)
    one, other = (json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines())
    assert one == other == {"timestamp": None, "input_length": 10, "output_length": None, "hash_ids": [0]}


def test_requests_are_written_in_order_of_time(tmp_path: Path) -> None:
    write_mooncake(tmp_path / "t.jsonl", [TraceRequest(2.0, [(1, 3)], 1), TraceRequest(1.0, [(2, 4)], 1)])
    assert [request.time_s for request in read_trace(tmp_path / "t.jsonl").requests] == [1, 2]
