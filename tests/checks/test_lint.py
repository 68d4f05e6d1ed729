"""What lint claims, held against what servers do: by llama.cpp's real one to the token."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.checks.lint import Measured, connected, measure, tokens_of
from harness.embedded.server import RunningServer
from harness.engines.base import Identity
from harness.engines.target import Target
from harness.engines.vllm import VllmEngine
from harness.errors import InputError, TargetError
from harness.lint.finding import lint
from harness.lint.reading import read_log, read_pair
from tests.checks.toy_server import ToyServer
from tests.engines.scripted_server import Request, scripted_servers
from tests.engines.scripted_server import Serve as ServeRoutes
from tests.lint.labelled_faults import FAULTS
from tests.lint.labelled_harmless import HARMLESS
from tests.lint.logs import written
from tests.lint.texts import RULES, TOOLS, chat

Serve = Callable[[ToyServer], str]
Start = Callable[..., RunningServer]

SENT = {
    "timestamp-first": "a_conversation_whose_system_message_has_the_time",
    "request-id-first": "id_in_a_part_of_its_own",
    "preamble-first": "customer_before_the_rules",
    "passages-reranked": "numbered_passages_in_the_user_message",
    "whitespace-changed": "text_wrapped_at_another_width",
    "keys-shuffled": "keys_of_a_system_message_that_is_json",
}
"""A labelled set of each kind that the tiny model's template shows; it shows no tools."""


def measured(url: str, path: Path) -> tuple[list[str], list[Measured]]:
    engine = connected(url)
    log, tokens = read_log(path), tokens_of(engine)
    found = lint(log, tokens)
    return [one.kind for one in found.kinds], measure(engine, log, found, tokens)


def test_loss_and_gain_are_what_a_real_server_shows(llama_cpp_server: Start, tmp_path: Path) -> None:
    server = llama_cpp_server(slots=1, context_tokens=4096)
    for kind, name in SENT.items():
        kinds, pairs = measured(server.url, written(tmp_path / "log.jsonl", FAULTS[name][1]))
        assert kinds == [kind]
        (pair,) = pairs
        _, later, _, rearranged = pair.requests
        assert later.claimed_tokens == later.cached_tokens
        assert rearranged.claimed_tokens == rearranged.cached_tokens
        assert rearranged.is_rearranged
        assert later.cached_tokens is not None
        assert rearranged.cached_tokens is not None
        assert rearranged.cached_tokens >= later.cached_tokens + 60


def test_tools_that_the_template_does_not_show_break_nothing(llama_cpp: RunningServer, tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", FAULTS["tools_in_a_new_order_each_time"][1])
    kinds, pairs = measured(llama_cpp.url, path)
    assert (kinds, pairs) == ([], [])


def test_a_text_is_sent_as_a_message(llama_cpp: RunningServer, tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"{number}.txt").write_text(f"Run 7{number}a\n{RULES}")
    engine = connected(llama_cpp.url)
    log, tokens = read_pair(tmp_path / "0.txt", tmp_path / "1.txt"), tokens_of(engine)
    (pair,) = measure(engine, log, lint(log, tokens), tokens)
    assert [one.source for one in pair.requests] == ["0.txt", "1.txt"] * 2
    assert pair.requests[3].cached_tokens == pair.requests[3].claimed_tokens
    assert pair.requests[3].prompt_tokens is not None
    assert pair.requests[3].cached_tokens is not None
    assert pair.requests[3].cached_tokens > 0.8 * pair.requests[3].prompt_tokens


def command(*words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    line = [sys.executable, "-m", "harness.cli", "lint", *map(str, words)]
    return subprocess.run(line, capture_output=True, encoding="utf-8", timeout=120, env=environment)


def test_the_command_shows_claim_and_measurement(llama_cpp: RunningServer, tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", FAULTS["iso_time_in_the_first_line"][1])
    done = command(path, "--target", llama_cpp.url)
    assert done.returncode == 1, done.stderr
    rows = [line.replace("│", " ").split() for line in done.stdout.split("Measured at the target")[1].splitlines()]
    counts = [row[-3:] for row in rows if row[:1] == ["line"]]
    assert [claimed == cached for _, claimed, cached in counts] == [False, True, False, True]
    assert int(counts[3][2]) > int(counts[1][2]) + 100
    as_json = json.loads(command(path, "--target", llama_cpp.url, "--json").stdout)
    assert [one["is_rearranged"] for one in as_json["measured"][0]["requests"]] == [False, False, True, True]
    harmless = command(written(path, HARMLESS["questions_of_their_own"]), "--target", llama_cpp.url)
    assert harmless.returncode == 0
    assert "Measured" not in harmless.stdout


def test_a_server_that_shows_no_tokens(serve: Serve, tmp_path: Path) -> None:
    engine = connected(serve(ToyServer(16, reports=False)))
    log, tokens = read_log(written(tmp_path / "log.jsonl", FAULTS["counter_of_requests"][1])), tokens_of(engine)
    assert "does not show its tokens. Tokens are estimated" in tokens.how
    (pair,) = measure(engine, log, lint(log, tokens), tokens)
    assert [one.cached_tokens for one in pair.requests] == [None] * 4
    assert [one.claimed_tokens is None for one in pair.requests] == [True, False, True, False]


def test_a_request_that_fails_is_one_sentence(serve: Serve, tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", FAULTS["counter_of_requests"][1])
    with pytest.raises(TargetError, match=r"line 2 could not be sent .*out of memory"):
        measured(serve(ToyServer(fails_at=1)), path)


def test_one_target_is_measured(serve: Serve) -> None:
    url = serve(ToyServer())
    with pytest.raises(InputError, match="names 2 targets"):
        connected(f"{url},{serve(ToyServer())}")
    with pytest.raises(TargetError, match="does not serve a model 'other'"):
        connected(url, "other")


@pytest.fixture
def serve_routes() -> Iterator[ServeRoutes]:
    with scripted_servers() as start:
        yield start


class Recorded:
    """A vLLM that keeps what it was asked."""

    def __init__(self, tokens: Any) -> None:
        self.asked: dict[str, list[dict[str, Any]]] = {"tokenize": [], "chat": []}
        self.tokens = tokens

    @property
    def routes(self) -> dict[str, Any]:
        return {"POST /tokenize": self._tokenize, "POST /v1/chat/completions": self._chat}

    def _tokenize(self, request: Request) -> Any:
        body = json.loads(request["body"])
        self.asked["tokenize"].append(body)
        return self.tokens(body)

    def _chat(self, request: Request) -> Any:
        self.asked["chat"].append(json.loads(request["body"]))
        events: list[dict[str, Any]] = [
            {"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]},
            {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}},
        ]
        return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


class TellsNothing(VllmEngine):
    def identify(self) -> Identity:
        return Identity("vllm", "tiny", granularity_tokens=16)


def test_tools_and_a_salt_go_with_the_request(serve_routes: ServeRoutes, tmp_path: Path) -> None:
    server = Recorded(lambda body: {"tokens": list(json.dumps([body.get("tools"), body["messages"]]).encode())})
    engine = TellsNothing(Target(url=serve_routes(server.routes)), "tiny")
    path = written(tmp_path / "log.jsonl", FAULTS["two_tools_changed_places"][1])
    log, tokens = read_log(path), tokens_of(engine)
    found = lint(log, tokens)
    assert [one.kind for one in found.kinds] == ["tools-shuffled"]
    (pair,) = measure(engine, log, found, tokens)
    sent = server.asked["chat"]
    assert len({one["cache_salt"] for one in sent}) == 1
    assert [one["max_tokens"] for one in sent] == [1] * 4
    assert sent[1]["tools"] == [TOOLS[k] for k in (0, 1, 3, 2)]
    assert sent[2]["tools"] == sent[3]["tools"] == sorted(TOOLS, key=lambda tool: str(tool["function"]["name"]))
    assert sent[1]["messages"] == log.requests[1].prompt.body["messages"]
    assert all(one.claimed_tokens is None or one.claimed_tokens % 16 == 0 for one in pair.requests)


def test_a_chat_that_the_template_refuses(serve_routes: ServeRoutes, tmp_path: Path) -> None:
    server = Recorded(lambda body: (400, {}) if len(body["messages"]) > 1 else {"tokens": [1]})
    engine = TellsNothing(Target(url=serve_routes(server.routes)), "tiny")
    log = read_log(written(tmp_path / "log.jsonl", [chat(RULES, "Why is it so?")]))
    with pytest.raises(TargetError, match=r"does not tokenise the chat that ends with 'Why is it so[?]'"):
        lint(log, tokens_of(engine))
