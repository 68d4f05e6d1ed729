"""The simulated llama.cpp server against recorded exchanges with the real one, in two builds of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.embedded.server import running_server
from harness.sim.answers import Answers
from harness.sim.options import SimOptions
from harness.sim.vocabulary import Vocabulary
from tests.sim.exchange import (
    FIXTURES,
    Allowed,
    Difference,
    Response,
    ask,
    compare,
    differences,
    recorded,
    recorded_body,
    unexplained,
)
from tests.sim.llama_cpp_allowed import OF_ONE_BUILD, RECORDED
from tests.sim.sized import chat, lone_question, request, words

BUILDS = ("llama-server", "xllamacpp")
QUESTION = words(6, 100)
"""Of the chat that others begin like; they share as many of its words as the recorded ones did."""

Exchanges = Mapping[str, Response]
Play = Callable[..., None]


@contextmanager
def exchanging(options: SimOptions) -> Iterator[tuple[dict[str, Response], Play]]:
    """A server, the responses so far by name, and what adds one: the name, the path, the request."""
    answers: dict[str, Response] = {}
    with running_server(options) as server:

        def play(name: str, path: str, body: Any = None, **how: Any) -> None:
            answers[name] = ask(server.url, path, body, **how)

        yield answers, play


def options(context_tokens: int, slot_save_path: Path) -> SimOptions:
    return SimOptions(
        manner="llama-cpp", kv_tokens=context_tokens, slots=1, time_scale=20.0, slot_save_path=str(slot_save_path)
    )


@pytest.fixture(scope="module")
def exchanges(tmp_path_factory: pytest.TempPathFactory) -> Exchanges:
    """All in the order in which they were recorded, as each finds in the slot what the ones before it left."""
    slots = tmp_path_factory.mktemp("slots")
    with exchanging(options(8192, slots)) as (answers, play):
        play_chats(play)
        play_completions(play)
        play_errors(play)
        play_pages(play)
        found = dict(answers)
    with exchanging(options(1024, slots)) as (answers, play):
        full = chat(927, 900, words(4), system=7)
        play("chat_stream_context_full", "/v1/chat/completions", sized("chat_stream_context_full", full))
        play("error_too_long_1024", "/v1/chat/completions", sized("error_too_long_1024", chat(1128, 1000, words(9))))
        found |= answers
    return found


def sized(name: str, messages: Any = None, prompt: str | None = None) -> dict[str, Any]:
    return request(f"llama-server/{name}", messages, prompt)


def play_chats(play: Play) -> None:
    def send(name: str, messages: Any, **more: Any) -> None:
        play(name, "/v1/chat/completions", {**sized(name, messages), **more})

    warm = chat(1529, 1515, QUESTION)
    play("before", "/v1/chat/completions", {"messages": chat(1100, 1090, words(2), system=500), "max_tokens": 8})
    play("metrics_before", "/metrics")
    send("chat_stream_cold", chat(1534, 1515, words(5, 200)))
    play("metrics_after_cold", "/metrics")
    send("chat_stream_warm", warm)
    play("metrics_after_warm", "/metrics")
    play("slots_after", "/slots")
    two_words = chat(1527, 1515, words(2, 100) + words(2, 210))
    send("chat_stream_no_usage_option", two_words)
    send("chat_stream_timings_per_token", two_words)
    send("chat_stream_return_progress", chat(2526, 2500, words(4), system=900))
    send("chat_json_warm", chat(1530, 1515, words(4, 100)))
    send("chat_json_stop_string", two_words, stop=[" a thing that is not said", stop_inside_the_second_word(two_words)])


def stop_inside_the_second_word(messages: list[dict[str, str]]) -> str:
    """A stop string that cuts the answer's second word, as the recorded one did, and stands nowhere before."""
    vocabulary = Vocabulary()
    first, second = itertools.islice(Answers(0, vocabulary.words).to(vocabulary.encode_chat(messages)), 2)
    said, stop = vocabulary.decode([first, second]), vocabulary.decode([second])[-2:]
    assert said.index(stop) == len(said) - 2
    return stop


def play_completions(play: Play) -> None:
    play("completion_native", "/completion", sized("completion_native", prompt=words(7, 40)))
    play("v1_completions_stream", "/v1/completions", sized("v1_completions_stream", prompt=words(7, 40)))
    play("unknown_model", "/v1/chat/completions", sized("unknown_model", lone_question(17)))
    play("error_slot_bad_id", "/slots/9?action=erase", {})


def play_errors(play: Play) -> None:
    bad = (FIXTURES / "llama-server" / "error_bad_json.request.txt").read_bytes()
    play("error_bad_json", "/v1/chat/completions", bad)
    play("error_bad_type", "/v1/chat/completions", sized("error_bad_type"))
    play("error_no_messages", "/v1/chat/completions", sized("error_no_messages"))
    for name in ("error_too_long_json", "error_too_long_stream"):
        play(name, "/v1/chat/completions", sized(name, lone_question(9016)))
    play("error_unknown_path", "/nothing/here")
    play("error_wrong_method", "/v1/chat/completions")
    play("error_slot_bad_action", "/slots/0?action=what", {})


def play_pages(play: Play) -> None:
    play("apply_template", "/apply-template", sized("apply_template"))
    play("tokenize", "/tokenize", sized("tokenize"))
    for name, path in (("health", "/health"), ("props", "/props"), ("v1_models", "/v1/models")):
        play(name, path)
    play("to_erase", "/v1/chat/completions", {"messages": chat(1523, 1510, words(3)), "max_tokens": 16})
    play("slot_save", "/slots/0?action=save", {"filename": "a.bin"})
    play("slot_erase", "/slots/0?action=erase", {})
    play("slot_restore", "/slots/0?action=restore", {"filename": "a.bin"})
    play("error_slot_bad_filename", "/slots/0?action=save", {"filename": "../x.bin"})
    play("error_slot_missing_file", "/slots/0?action=restore", {"filename": "missing.bin"})


RESPONSES = sorted(path.name.removesuffix(".response.http") for path in FIXTURES.glob("llama-server/*.response.http"))
BODIES = sorted(
    path.name.removesuffix(".body.json")
    for path in FIXTURES.glob("llama-server/*.body.json")
    if path.name != "slots_busy.body.json"
)
"""Recorded without their heads. `slots_busy` has a test of its own."""


def allowed(build: str) -> tuple[Allowed, ...]:
    return (*RECORDED, *OF_ONE_BUILD) if build == "llama-server" else RECORDED


def of_response(exchanges: Exchanges, build: str, name: str) -> list[Difference]:
    return compare(recorded(f"{build}/{name}"), exchanges[name])


def of_body(exchanges: Exchanges, build: str, name: str) -> list[Difference]:
    return [*differences(recorded_body(f"{build}/{name}.body.json"), exchanges[name].content, "body")]


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", RESPONSES)
def test_it_answers_as_was_recorded(exchanges: Exchanges, name: str, build: str) -> None:
    assert unexplained(of_response(exchanges, build, name), allowed(build)) == []


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", BODIES)
def test_its_bodies_are_like_the_recorded_ones(exchanges: Exchanges, name: str, build: str) -> None:
    assert unexplained(of_body(exchanges, build, name), allowed(build)) == []


def test_every_allowance_is_needed(exchanges: Exchanges) -> None:
    found: list[Difference] = []
    for build in BUILDS:
        found += itertools.chain.from_iterable(of_response(exchanges, build, name) for name in RESPONSES)
        found += itertools.chain.from_iterable(of_body(exchanges, build, name) for name in BODIES)
    unused = [
        one.where for one in (*RECORDED, *OF_ONE_BUILD) if not any(one.covers(difference) for difference in found)
    ]
    assert unused == []


PAGES = ("metrics_before", "metrics_after_cold", "metrics_after_warm")


@pytest.mark.parametrize("build", BUILDS)
def test_the_metrics_page_has_the_same_families(exchanges: Exchanges, build: str) -> None:
    for page in PAGES:
        real, simulated = families(recorded_body(f"{build}/{page}.body.txt")), families(exchanges[page].body.decode())
        assert simulated[: len(real)] == real
        own = [line for line in simulated[len(real) :] if not line.startswith("# TYPE kvswarm_sim_")]
        assert [line for line in own if not line.startswith("kvswarm_sim_")] == []


def test_its_head_tells_when_the_process_started(exchanges: Exchanges) -> None:
    headers = exchanges["metrics_before"].headers
    assert re.fullmatch(r"\d+", headers["process-start-time-unix"])
    assert headers["content-type"] == "text/plain; version=0.0.4"


@pytest.mark.parametrize("build", BUILDS)
def test_each_request_moves_the_counters_as_was_recorded(exchanges: Exchanges, build: str) -> None:
    real = [values(recorded_body(f"{build}/{page}.body.txt")) for page in PAGES]
    simulated = [values(exchanges[page].body.decode()) for page in PAGES]
    for name in ("prompt_tokens", "prompt_tokens_cached", "tokens_predicted", "n_decode"):
        key = f"llamacpp:{name}_total"
        moved = [
            [after[key] - before[key] for before, after in itertools.pairwise(pages)] for pages in (real, simulated)
        ]
        assert moved[0] == moved[1]
    for name in ("n_tokens_max", "requests_processing", "requests_deferred", "n_busy_slots_per_decode"):
        assert [page[f"llamacpp:{name}"] for page in simulated[1:]] == [page[f"llamacpp:{name}"] for page in real[1:]]


def moved(pages: list[dict[str, float]], name: str) -> list[float]:
    """From each page to the next."""
    return [after[name] - before[name] for before, after in itertools.pairwise(pages)]


def families(page: str) -> list[str]:
    """Its lines without the values."""
    return [line if line.startswith("#") else line.split()[0] for line in page.splitlines()]


def values(page: str) -> dict[str, float]:
    return {line.split()[0]: float(line.split()[1]) for line in page.splitlines() if not line.startswith("#")}
