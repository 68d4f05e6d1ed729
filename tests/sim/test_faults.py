"""Each fault on a simulated engine, over loopback, and what kvswarm's own client and collector record of it."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.collector import Row, open_collector, scrape, value
from harness.embedded.process import free_port, process_group
from harness.embedded.server import RunningServer, running_server
from harness.engines.detect import connect
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target
from harness.errors import InputError
from harness.sim.faults import KINDS, Fault, parse
from harness.sim.options import MannerName, SimOptions
from harness.workload.words import CANDIDATES

MANNERS: tuple[MannerName, ...] = ("vllm", "sglang", "llama-cpp", "mlx-lm")
TOKENS = 8
CHAT = [{"role": "user", "content": " ".join(CANDIDATES[:40])}]


class Faulty:
    """A server, and a client of it."""

    def __init__(self, server: RunningServer, **fields: Any) -> None:
        self.url = server.url
        self.target = Target(url=server.url, **fields)
        self.engine: OpenAIEngine = connect(self.target)

    def ask(self, fault: str = "", tokens: int = TOKENS, **fields: Any) -> Reply:
        """`fields`: of the target, other than usual."""
        payload = self.engine.chat_payload(CHAT, tokens)
        return self.post("/chat/completions", payload, fault, **fields)

    def ask_plainly(self, fault: str = "") -> Reply:
        """For an answer in one piece."""
        payload = self.engine.chat_payload(CHAT, TOKENS)
        payload = {name: value for name, value in payload.items() if name not in ("stream", "stream_options")}
        return self.post("/chat/completions", payload, fault)

    def post(self, path: str, payload: Any, fault: str, **fields: Any) -> Reply:
        client = TimedClient(self.target.model_copy(update=fields), self.engine.read_event)
        try:
            return client.post(path, payload, {"X-Sim-Fault": fault} if fault else {}, lambda reply: None)
        finally:
            client.close()


def get(url: str, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


@contextmanager
def started(**options: Any) -> Iterator[Faulty]:
    with running_server(SimOptions(**{"manner": "vllm", "preset": "h100-8b", **options})) as server:
        yield Faulty(server)


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


def test_a_metrics_page_that_breaks_off_is_no_page() -> None:
    with started(faults=("broken-metrics",)) as faulty:
        rows: list[Row] = []
        collector = open_collector(faulty.target, rows.extend)
        collector.scrape_now("before")
        assert not collector.available
        assert "is no Prometheus metrics page" in (collector.reason or "")
        assert [(row["name"], row["value"]) for row in rows if row["name"] == "up"] == [("up", 0.0)]
        assert faulty.ask().status == "ok"


def test_a_slow_metrics_page_takes_its_time_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with started(faults=("slow-metrics:0.5",)) as faulty:
        rows: list[Row] = []
        collector = open_collector(faulty.target, rows.extend)
        collector.scrape_now("before")
        (duration,) = [row["value"] for row in rows if row["name"] == "scrape_duration_seconds"]
        assert duration >= 0.5
        assert collector.available
        monkeypatch.setattr(scrape, "TIMEOUT_S", 0.1)
        collector.scrape_now("after")
        assert not collector.available
        assert "no answer in time" in (collector.reason or "")


@pytest.mark.parametrize("manner", ["vllm", "sglang", "llama-cpp"])
def test_a_restart_loses_the_request_and_the_counters_and_is_noticed(manner: MannerName) -> None:
    with started(manner=manner) as faulty:
        collector = open_collector(faulty.target, lambda rows: None)
        (counter,) = [metric for metric in faulty.engine.metrics if metric.meaning == "generated_tokens"]
        assert faulty.ask().status == "ok"
        assert collector.settle("before", faulty.engine.is_idle)
        assert value(counter, collector.samples) == TOKENS
        lost = faulty.ask("restart")
        assert (lost.status, lost.t_first) in (("truncated", None), ("stream_error", None))
        again = _until_it_is_back(faulty)
        assert (again.status, again.cached_tokens) == ("ok", 0)
        assert collector.settle("after", faulty.engine.is_idle)
        assert value(counter, collector.samples) == TOKENS
        assert len(collector.restarts) == 1


@pytest.mark.timing
def test_a_restart_can_come_by_itself() -> None:
    with started(faults=("restart:1.5",)) as faulty:
        collector = open_collector(faulty.target, lambda rows: None)
        collector.scrape_now("before")
        deadline = time.monotonic() + 30
        while not collector.restarts and time.monotonic() < deadline:
            time.sleep(0.2)
            collector.scrape_now("periodic")
        assert len(collector.restarts) == 1


def _until_it_is_back(faulty: Faulty) -> Reply:
    deadline = time.monotonic() + 30
    while (reply := faulty.ask()).status != "ok" and time.monotonic() < deadline:
        time.sleep(0.05)
    return reply


@contextmanager
def process(fault: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server that need not be up yet, and its URL."""
    options = SimOptions(manner="vllm", faults=(fault,))
    port = free_port(options.host)
    command = [str(options.python()), *options.arguments(port)]
    with process_group(command, {}, folder / "log") as running:
        yield running, f"http://127.0.0.1:{port}/v1"


def post_until_ok(url: str) -> list[tuple[str, int | None]]:
    """(status, HTTP status) of requests one after the other, each that differs from the one before."""
    seen: list[tuple[str, int | None]] = []
    target = Target(url=url)
    deadline = time.monotonic() + 60
    with_reading = connect_reader()
    while time.monotonic() < deadline:
        client = TimedClient(target, with_reading)
        body = {"model": "tiny", "messages": CHAT, "max_tokens": 2, "stream": True}
        reply = client.post("/chat/completions", body, {}, lambda reply: None)
        client.close()
        if not seen or seen[-1] != (reply.status, reply.http_status):
            seen.append((reply.status, reply.http_status))
        if reply.status == "ok":
            break
        time.sleep(0.05)
    return seen


def connect_reader() -> Any:
    from harness.engines.reading import read_event

    return read_event


def test_while_it_loads_it_is_there_and_answers_nothing(tmp_path: Path) -> None:
    with process("loading:2", tmp_path) as (_, url):
        seen = post_until_ok(url)
    assert seen[-2:] == [("http_error", 503), ("ok", 200)]
    assert seen[:-2] in ([], [("connect_error", None)])


def test_a_late_start_refuses_connections(tmp_path: Path) -> None:
    with process("unreachable:2", tmp_path) as (_, url):
        assert post_until_ok(url) == [("connect_error", None), ("ok", 200)]


def test_whoever_starts_a_slow_server_waits_until_it_is_healthy() -> None:
    with started(faults=("loading:2",)) as faulty:
        assert get(faulty.url, "/health")[0] == 200


def test_a_share_of_the_requests_meets_a_fault_the_same_ones_each_time() -> None:
    patterns = []
    for _ in range(2):
        with started(faults=("503@0.5",), seed=4) as faulty:
            patterns.append([faulty.ask(tokens=1).status for _ in range(20)])
    assert patterns[0] == patterns[1]
    assert set(patterns[0]) == {"ok", "http_error"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("stall", Fault("stall", 5.0)),
        (" stall:0.5@0.25 ", Fault("stall", 0.5, 0.25)),
        ("no-done@.1", Fault("no-done", 0.0, 0.1)),
        ("429:30", Fault("429", 30.0)),
        ("clock-skew:-60", Fault("clock-skew", -60.0)),
        ("reset:0", Fault("reset", 0.0)),
    ],
)
def test_a_fault_is_a_kind_with_a_value_and_a_share(text: str, fault: Fault) -> None:
    assert parse(text) == fault


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not kind, kind:value or kind:value@share"),
        ("stall:", "is not kind, kind:value or kind:value@share"),
        ("flood", "There is no fault 'flood': choose one of loading, "),
        ("no-done:3", "no-done takes no value"),
        ("stall:-1", "stall needs a value of 0 or more"),
        ("tokens-per-chunk:0", "tokens-per-chunk needs a value of 1 or more"),
        ("stall@0", "stall needs a share above 0, at most 1"),
        ("stall@1.5", "stall needs a share above 0, at most 1"),
        ("loading:3@0.5", "loading is not one of requests"),
    ],
)
def test_what_is_no_fault_is_told_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse(text)


def test_every_kind_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text()
    (table,) = re.findall(r"^\| fault \|.*\n(?:\|.*\n)+", page, re.MULTILINE)
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines()[2:]]
    listed = {kind: values for kinds, values in rows for kind in re.findall(r"`([^`]+)`", kinds)}
    assert list(listed) == list(KINDS)
    for kind, values in listed.items():
        default = KINDS[kind].value
        assert values == "" if default is None else f"({default:g})" in values
