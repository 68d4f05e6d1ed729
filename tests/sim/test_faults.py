"""Each fault on a simulated engine, over loopback, and what kvswarm's own client and collector record of it."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness.client.reply import Reply
from harness.sim.options import MannerName
from tests.sim.faulty import CHAT, TOKENS, Faulty, get, started

MANNERS: tuple[MannerName, ...] = ("vllm", "sglang", "llama-cpp", "mlx-lm")


@pytest.fixture(scope="module", params=MANNERS)
def any_engine(request: pytest.FixtureRequest) -> Iterator[Faulty]:
    with started(manner=request.param) as faulty:
        yield faulty


@pytest.fixture(scope="module")
def vllm() -> Iterator[Faulty]:
    with started() as faulty:
        yield faulty


def first_words(reply: Reply, count: int) -> str:
    """Each token of an answer is a word with the space before it."""
    return "".join(f" {word}" for word in reply.text.split()[:count]).strip()


def test_without_a_fault_all_is_well(any_engine: Faulty) -> None:
    reply = any_engine.ask()
    assert (reply.status, reply.chunks, reply.output_tokens, reply.finish_reason) == ("ok", TOKENS, TOKENS, "length")
    assert len(reply.text.split()) == TOKENS


def test_a_stall_is_a_long_gap_between_two_tokens(any_engine: Faulty) -> None:
    reply = any_engine.ask("stall:0.4")
    assert (reply.status, reply.output_tokens) == ("ok", TOKENS)
    assert reply.itl_ms is not None
    assert max(reply.itl_ms) >= 380
    assert reply.itl_ms.index(max(reply.itl_ms)) == 2


def test_a_stall_beyond_the_clients_patience_is_a_timeout(vllm: Faulty) -> None:
    reply = vllm.ask("stall:30", read_timeout_s=0.3)
    assert (reply.status, reply.chunks, reply.finish_reason) == ("timeout", 3, None)
    assert reply.error == "nothing came from the server for 0.3 s"
    assert reply.t_first is not None
    assert vllm.ask().status == "ok"


def test_a_reset_in_mid_stream_keeps_what_had_come(any_engine: Faulty) -> None:
    whole, reply = any_engine.ask(), any_engine.ask("reset:3")
    assert (reply.status, reply.error) == ("stream_error", "the connection broke: Connection reset by peer")
    assert (reply.chunks, reply.http_status, reply.finish_reason) == (3, 200, None)
    assert reply.text.strip() == first_words(whole, 3)
    assert reply.output_tokens_source == ("usage" if reply.prompt_tokens is not None else "events")


def test_a_reset_may_come_before_the_first_token(vllm: Faulty) -> None:
    reply = vllm.ask("reset:0")
    assert (reply.status, reply.chunks, reply.t_first) == ("stream_error", 0, None)


def test_a_stream_without_done_is_whole_if_it_says_why_it_ended(any_engine: Faulty) -> None:
    reply = any_engine.ask("no-done")
    assert (reply.status, reply.finish_reason, reply.output_tokens) == ("ok", "length", TOKENS)
    assert reply.t_end is not None


def test_an_error_in_the_stream_fails_the_request_in_the_engines_words(any_engine: Faulty) -> None:
    reply = any_engine.ask("error-event:2")
    assert (reply.status, reply.error, reply.http_status) == ("stream_error", "The engine died", 200)
    assert reply.chunks == 2
    assert any_engine.ask().status == "ok"


def test_json_that_is_cut_is_told_with_its_beginning(any_engine: Faulty) -> None:
    reply = any_engine.ask("truncated-json:3")
    assert reply.status == "stream_error"
    assert reply.error is not None
    assert reply.error.startswith("not a JSON object: {")
    assert reply.chunks == 3


@pytest.mark.parametrize(("status", "words"), [(429, "Too many requests"), (503, "The server is overloaded")])
def test_a_refusal_has_its_status_and_says_when_to_come_again(any_engine: Faulty, status: int, words: str) -> None:
    reply = any_engine.ask(f"{status}:7")
    assert (reply.status, reply.http_status, reply.error) == ("http_error", status, words)
    assert (reply.t_first, reply.chunks) == (None, 0)
    assert reply.t_end is not None
    connection = http.client.HTTPConnection(urlsplit(any_engine.url).netloc, timeout=10)
    connection.request("POST", "/v1/chat/completions", b"{}", {"X-Sim-Fault": f"{status}:7"})
    assert connection.getresponse().headers["Retry-After"] == "7"
    connection.close()


def test_several_tokens_in_a_chunk_are_fewer_chunks_of_the_same_text(any_engine: Faulty) -> None:
    whole, reply = any_engine.ask(), any_engine.ask("tokens-per-chunk:3")
    assert (reply.status, reply.chunks, reply.output_tokens) == ("ok", 3, TOKENS)
    assert reply.text == whole.text
    assert (reply.finish_reason, reply.prompt_tokens) == (whole.finish_reason, whole.prompt_tokens)
    assert reply.itl_ms is not None
    assert len(reply.itl_ms) == 2


def test_a_role_is_no_output_wherever_it_stands(any_engine: Faulty) -> None:
    whole = any_engine.ask()
    for fault in ("role-first", "no-role-first"):
        reply = any_engine.ask(fault)
        assert (reply.status, reply.text, reply.chunks) == ("ok", whole.text, TOKENS)
        assert reply.first_tokens == 1


def test_where_the_role_stands_is_what_the_fault_says(any_engine: Faulty) -> None:
    def first_deltas(fault: str) -> list[dict[str, Any]]:
        payload = json.dumps(any_engine.engine.chat_payload(CHAT, 3)).encode()
        connection = http.client.HTTPConnection(urlsplit(any_engine.url).netloc, timeout=10)
        headers = {"X-Sim-Fault": fault, "Content-Type": "application/json"}
        connection.request("POST", "/v1/chat/completions", payload, headers)
        events = connection.getresponse().read().split(b"\n\n")
        connection.close()
        objects = [json.loads(event[6:]) for event in events if event.startswith(b"data: {")]
        return [one["choices"][0]["delta"] for one in objects[:2]]

    alone, text = first_deltas("role-first")
    assert (alone["role"], alone.get("content") or "") == ("assistant", "")
    assert text["content"]
    together, _ = first_deltas("no-role-first")
    assert together["role"] == "assistant"
    assert together["content"]


def test_without_usage_tokens_are_counted_by_chunks_and_the_cache_is_not_known(any_engine: Faulty) -> None:
    reply = any_engine.ask("no-usage")
    assert (reply.status, reply.prompt_tokens, reply.cached_tokens) == ("ok", None, None)
    assert (reply.output_tokens, reply.output_tokens_source) == (TOKENS, "events")


def test_faults_can_meet_in_one_request(vllm: Faulty) -> None:
    reply = vllm.ask("no-usage, tokens-per-chunk:4, no-done")
    assert (reply.status, reply.chunks, reply.prompt_tokens) == ("ok", 2, None)


def test_answers_in_one_piece_break_too(any_engine: Faulty) -> None:
    whole = any_engine.ask_plainly()
    assert (whole.status, whole.output_tokens) == ("ok", TOKENS)
    cut = any_engine.ask_plainly("truncated-json")
    assert cut.status == "stream_error"
    assert (cut.error or "").startswith("not a JSON object: {")
    reset = any_engine.ask_plainly("reset")
    assert (reset.status, reset.error) == ("stream_error", "the connection broke: Connection reset by peer")
    failed = any_engine.ask_plainly("error-event")
    assert (failed.status, failed.http_status, failed.error) == ("http_error", 500, "The engine died")
    uncounted = any_engine.ask_plainly("no-usage")
    assert (uncounted.status, uncounted.prompt_tokens, uncounted.text) == ("ok", None, whole.text)
    assert any_engine.ask_plainly("stall:0.1").text == whole.text


def test_another_clock_in_the_server_changes_nothing(vllm: Faulty) -> None:
    before = time.time_ns()
    reply = vllm.ask("clock-skew:-7200")
    assert reply.status == "ok"
    assert reply.t_send is not None
    assert reply.t_first is not None
    assert reply.t_end is not None
    assert before <= reply.t_send <= reply.t_first <= reply.t_end <= time.time_ns()
    _, headers, _ = get(vllm.url, "/health", **{"X-Sim-Fault": "clock-skew:-7200"})
    skewed = parsedate_to_datetime(headers["Date"]).timestamp() - time.time()
    assert -7260 < skewed < -7140


@pytest.mark.parametrize("asked", ["nonsense", "stall:x", "loading:3"])
def test_a_fault_that_is_none_is_refused(vllm: Faulty, asked: str) -> None:
    reply = vllm.ask(asked)
    assert (reply.status, reply.http_status) == ("http_error", 400)
    assert asked.partition(":")[0] in (reply.error or "")
