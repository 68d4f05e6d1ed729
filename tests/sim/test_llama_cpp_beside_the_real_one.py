"""The simulated llama.cpp server beside the real one: the same requests, in the same order, to both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.embedded.server import LlamaCppOptions, running_server
from harness.sim.options import SimOptions
from tests.sim.exchange import Difference, Response, ask, compare, unexplained
from tests.sim.llama_cpp_allowed import BESIDE
from tests.sim.sized import words

CHAT = {"messages": [{"role": "system", "content": "#" + words(40)}, {"role": "user", "content": "# time"}]}
BIG = {"messages": [{"role": "system", "content": "#" + words(2500, 50)}, {"role": "user", "content": "# time"}]}
CHATS = "/v1/chat/completions"


def requests() -> Iterator[tuple[str, Any]]:
    """Path and body; None: it is a GET."""
    yield from pages()
    yield from tokenising()
    yield from chats()
    yield from completions()
    yield from slots()


def pages() -> Iterator[tuple[str, Any]]:
    for path in ("/health", "/v1/health", "/models", "/v1/models", "/props", "/slots", "/slots?fail_on_no_slot=1"):
        yield path, None
    yield from (("/lora-adapters", None), ("/v1/modelsx", None), (CHATS, None), ("/health", {}), ("/slots/0", None))


def tokenising() -> Iterator[tuple[str, Any]]:
    yield from (("/tokenize", {"content": content}) for content in TO_TOKENISE)
    yield "/tokenize", {"content": "é time<|im_end|>", "with_pieces": True}
    yield "/tokenize", {"content": "a", "add_special": True}
    yield from (("/tokenize", body) for body in NO_BODIES)
    yield from (("/detokenize", {"tokens": tokens}) for tokens in TO_DETOKENISE)
    yield "/detokenize", {}
    yield from (("/apply-template", {"messages": messages}) for messages in MESSAGES)
    yield "/apply-template", {"messages": [{"role": "user", "content": "x"}], "add_generation_prompt": False}
    yield f"{CHATS}/input_tokens", CHAT


TO_TOKENISE: tuple[Any, ...] = (
    *("", " time time#", "<|im_start|>a", "é 中", "\n\n  x\t"),
    *(["a", 1, 2, " time"], [True, 1.5], [None], 5, None),
)
NO_BODIES: tuple[Any, ...] = ({}, [1], b"x", b"", b'{"content": ', b'{"content": "a"', b'{"content": [{"a": 1}')
TO_DETOKENISE: tuple[Any, ...] = ([300, 301, 302], [1951, 1952, 1953], [], "a", [99999], [-1], ["a"], [None], [1.5])
PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
MESSAGES: tuple[Any, ...] = (
    "a",
    [],
    [5],
    [{"role": "user", "content": "x"}],
    [{"role": "assistant", "content": "x"}],
    *([message] for message in ({"role": "user"}, {"role": "assistant"}, {"content": "x"})),
    [{"role": 5, "content": "a"}],
    *([{"role": "user", "content": content}] for content in (None, 5, [], PARTS, [5], [PARTS[0], {"type": "text"}])),
    [{"role": "user", "content": [{"type": "other"}]}],
)


def chats() -> Iterator[tuple[str, Any]]:
    """Each after what the ones before it left in the slots."""
    lengths: list[dict[str, Any]] = [{"max_tokens": number} for number in (3, 0, 1, 2.5, "a", -5)]
    lengths += [{"n_predict": 2, "max_tokens": 3}, {"max_completion_tokens": 2, "max_tokens": 3}]
    for more in lengths:
        yield CHATS, {**CHAT, **more}
    two = {**CHAT, "max_tokens": 2}
    for more in ({"id_slot": 7}, {"id_slot": 0}, {"id_slot": "a"}, {"cache_prompt": False}, {"cache_prompt": 1}):
        yield CHATS, {**two, **more}
    for more in ({"stop": 5}, {"stop": []}, {"stop": ["never said"]}, {"temperature": -1}, {"stream": "yes"}):
        yield CHATS, {**two, **more}
    for options in ({}, {"include_usage": True}, {"include_usage": False}, None):
        yield CHATS, {**two, "stream": True, "stream_options": options}
    yield CHATS, {**two, "stream": True, "max_tokens": 1, "timings_per_token": True}
    yield CHATS, {**BIG, "max_tokens": 3, "stream": True, "return_progress": True}
    yield CHATS, {**BIG, "max_tokens": 3, "return_progress": True}
    yield "/chat/completions", {**two, "stream_options": {"include_usage": True}}
    yield CHATS, {"messages": [*CHAT["messages"], {"role": "assistant", "content": "# so"}], "max_tokens": 2}
    yield CHATS, {"messages": [{"role": "user", "content": "#" + words(5000)}], "max_tokens": 2}
    yield CHATS, {"messages": [{"role": "user", "content": "#" + words(5000)}], "stream": True}
    for body in ({"messages": [], "max_tokens": 2}, {}, [1], b"{"):
        yield CHATS, body


def completions() -> Iterator[tuple[str, Any]]:
    prompts: list[Any] = [words(9), [545, 545, 300], [" time", 545], [], 5, [99999], [545, 545, 300, 301]]
    prompts += [[None], [True], [1.5], None, [-1]]
    for prompt in prompts:
        yield "/completion", {"prompt": prompt, "n_predict": 2}
        yield "/v1/completions", {"prompt": prompt, "max_tokens": 2}
    for path in ("/completion", "/v1/completions", "/completions"):
        yield path, {"n_predict": 2}
        yield path, {"prompt": words(9), "n_predict": 3, "stream": True}
        yield path, {"prompt": words(9, 9), "n_predict": 2, "stream": True, "timings_per_token": True}
        yield path, {"prompt": words(7, 9), "n_predict": 2, "stream": True, "return_progress": True}
    sampling = {"temperature": 0.7, "seed": 3, "top_k": 5, "top_p": 0.9, "ignore_eos": True}
    yield "/completion", {"prompt": words(3), "n_predict": 4, "return_tokens": True, **sampling}


def slots() -> Iterator[tuple[str, Any]]:
    yield "/slots", None
    for number, action in (("0", "erase"), ("5", "erase"), ("x", "erase"), ("0", "what"), ("1", "erase")):
        yield f"/slots/{number}?action={action}", {}
    yield "/slots/0", {}
    yield "/slots", None
    yield from (
        ("/slots/0?action=save", body) for body in ({}, {"filename": 3}, {"filename": "../a"}, {"filename": ""})
    )
    yield CHATS, {**CHAT, "max_tokens": 4, "id_slot": 0}
    for action in ("save", "erase", "restore"):
        yield f"/slots/0?action={action}", {"filename": "a"}
        yield "/slots", None
    yield CHATS, {**CHAT, "max_tokens": 1, "id_slot": 0}
    yield "/slots/0?action=restore", {"filename": "missing"}
    yield "/slots", None


@pytest.fixture(scope="module")
def answers(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Response, Response]]:
    """The real answer and the simulated one to each request."""
    folder = tmp_path_factory.mktemp("slots")
    real = LlamaCppOptions(model=tiny_model, context_tokens=8192, slots=2, cache_ram_mib=0, slot_save_path=folder)
    saving = str(folder / "simulated")
    simulated = SimOptions(manner="llama-cpp", kv_tokens=8192, slots=2, time_scale=5.0, slot_save_path=saving)
    with running_server(real) as one, running_server(simulated) as other:
        return [(ask(one.url, path, body), ask(other.url, path, body)) for path, body in requests()]


@pytest.mark.parametrize("number", range(len(list(requests()))), ids=[str(one)[:80] for one in requests()])
def test_both_answer_alike(answers: list[tuple[Response, Response]], number: int) -> None:
    assert unexplained(compare(*answers[number]), BESIDE) == []


def test_every_allowance_is_needed(answers: list[tuple[Response, Response]]) -> None:
    found: list[Difference] = [difference for pair in answers for difference in compare(*pair)]
    assert [one.where for one in BESIDE if not any(one.covers(difference) for difference in found)] == []
