"""The llama.cpp adapter against llama.cpp's own server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from harness.collector.opening import open_collector
from harness.embedded.server import RunningServer
from harness.engines.detect import connect
from harness.engines.llama_cpp import LlamaCppEngine
from harness.engines.target import Target
from harness.errors import TargetError

CHATS = [
    [{"role": "user", "content": "# hello"}],
    [{"role": "system", "content": "# the library"}, {"role": "user", "content": "# opens at nine"}],
    [
        {"role": "user", "content": "# naïve café 東京"},
        {"role": "assistant", "content": "# <|im_end|> is a special token"},
        {"role": "user", "content": "#\n\n\tthen?  "},
    ],
]


@pytest.fixture(scope="module")
def engine(llama_cpp: RunningServer) -> LlamaCppEngine:
    engine = connect(Target(url=llama_cpp.url))
    assert isinstance(engine, LlamaCppEngine)
    return engine


def test_identity(engine: LlamaCppEngine) -> None:
    identity = engine.identify()
    assert (identity.engine, identity.model, identity.slots) == ("llama-cpp", "tiny", 4)
    assert identity.context_tokens == 4096
    assert identity.capacity_tokens is None
    assert identity.version
    assert identity.model_path
    assert identity.model_path.endswith(".gguf")
    assert identity.adapter is None
    assert not {"adapter", "metrics", "model_path"} & set(identity.unknown)
    assert identity.template_fingerprint
    assert identity.tokenizer_fingerprint
    assert engine.identify() == identity


@pytest.mark.parametrize("chat", CHATS)
def test_a_chat_is_counted_as_the_server_counts_it(engine: LlamaCppEngine, chat: list[dict[str, str]]) -> None:
    body: dict[str, Any] = {"model": "tiny", "messages": chat, "max_tokens": 1}
    answer = requests.post(f"{engine.target.url}/chat/completions", json=body, timeout=60).json()
    assert engine.count_chat(chat) == answer["usage"]["prompt_tokens"]
    assert len(engine.chat_tokens(chat)) == answer["usage"]["prompt_tokens"]


def test_the_head_of_the_template_shows_in_the_token_ids(engine: LlamaCppEngine) -> None:
    """Two chats with different first words share exactly what the template puts before them, and the opener."""
    first, second = (
        engine.chat_tokens([{"role": "system", "content": f"# {word}"}, {"role": "user", "content": "# x"}])
        for word in ("library", "policy")
    )
    shared = next(number for number, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)
    head = engine.count_text("<|im_start|>system\n#")
    assert shared == head


def test_text_is_counted_without_special_tokens(engine: LlamaCppEngine) -> None:
    assert engine.count_text("") == 0
    assert engine.count_text(" the") == 1
    assert engine.count_text(" the the the") == 3


def test_counting_and_asking_load_no_slot(engine: LlamaCppEngine) -> None:
    def work() -> list[str]:
        page = requests.get(f"{engine.target.server_root}/metrics", timeout=10).text
        counters = ("prompt_tokens_total", "prompt_tokens_cached_total", "n_decode_total")
        return [line for line in page.splitlines() if line.startswith(tuple(f"llamacpp:{name} " for name in counters))]

    assert open_collector(engine.target, sink=lambda _: None).settle("before", engine.is_idle)
    before = work()
    engine.identify()
    engine.count_chat(CHATS[1])
    engine.count_text(" the")
    assert len(before) == 3
    assert work() == before


def test_a_chat_yields_exactly_the_tokens_asked_for(engine: LlamaCppEngine) -> None:
    payload = {**engine.chat_payload(CHATS[1], 23), "stream": False}
    del payload["stream_options"]
    answer = requests.post(f"{engine.target.url}/chat/completions", json=payload, timeout=60).json()
    assert answer["usage"]["completion_tokens"] == 23
    assert answer["choices"][0]["finish_reason"] == "length"


def test_a_reset_makes_the_next_request_cold(llama_cpp_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    server = llama_cpp_server(slots=1, context_tokens=1024, cache_ram_mib=0, slot_save_path=tmp_path)
    engine = connect(Target(url=server.url))
    assert engine.identify().capacity_tokens == 1024

    def cached() -> int:
        body: dict[str, Any] = {"model": "tiny", "messages": CHATS[1], "max_tokens": 1}
        usage = requests.post(f"{server.url}/chat/completions", json=body, timeout=60).json()["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    prompt_tokens = engine.count_chat(CHATS[1])
    assert [cached(), cached()] == [0, prompt_tokens - 1]
    outcome = engine.reset_cache()
    assert not outcome.complete
    assert outcome.message.startswith(f"{prompt_tokens} tokens in 1 slots were erased")
    assert cached() == 0


def test_a_reset_without_the_flag_says_so(llama_cpp_server: Callable[..., RunningServer]) -> None:
    server = llama_cpp_server(slots=1, context_tokens=512)
    assert "must be started with --slot-save-path" in connect(Target(url=server.url)).reset_cache().message


def test_an_api_key_opens_the_server_and_a_missing_one_is_told(
    llama_cpp_server: Callable[..., RunningServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = llama_cpp_server(slots=1, context_tokens=512, api_key="s3cret")
    with pytest.raises(TargetError, match="answered 401: the server wants an API key"):
        connect(Target(url=server.url))
    monkeypatch.setenv("KVSWARM_TEST_KEY", "s3cret")
    engine = connect(Target(url=server.url, api_key_env="KVSWARM_TEST_KEY"))
    assert engine.count_text(" the") == 1
    collector = open_collector(engine.target, sink=lambda _: None)
    collector.scrape_now("before")
    assert collector.available
