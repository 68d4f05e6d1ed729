"""The real server's prefix cache, to the token, with its options."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.embedded.server import RunningServer
from tests.embedded.dialogue import cached_tokens, chat, common, fresh_words, prompt_ids


def test_cold_warm_and_repeated(llama_cpp: RunningServer) -> None:
    document, question = fresh_words(200), fresh_words(10)
    chat(llama_cpp, fresh_words(20))
    template_head = common(prompt_ids(llama_cpp, "# one"), prompt_ids(llama_cpp, "# two"))

    cold = chat(llama_cpp, document)
    cached = cached_tokens(cold)
    assert cached is not None
    assert cached <= template_head  # less if the slot last held a chat that began otherwise

    warm = chat(llama_cpp, document + question)
    expected = common(prompt_ids(llama_cpp, document), prompt_ids(llama_cpp, document + question))
    assert expected > 200
    assert cached_tokens(warm) == expected

    repeated = chat(llama_cpp, document + question)
    assert cached_tokens(repeated) == repeated["usage"]["prompt_tokens"] - 1


@pytest.mark.parametrize("kv_unified", [False, True])
def test_with_the_cache_off_every_request_reports_none(
    llama_cpp_server: Callable[..., RunningServer], kv_unified: bool
) -> None:
    server = llama_cpp_server(cache_prompt=False, context_tokens=2048, slots=2, kv_unified=kv_unified)
    first, second, third = fresh_words(50), fresh_words(50), fresh_words(50)
    for prompt in (first, first, second, third, first, first + second):
        assert cached_tokens(chat(server, prompt)) == 0


@pytest.mark.parametrize(("cache_ram_mib", "comes_back"), [(0, False), (64, True)])
def test_an_evicted_prompt_comes_back_from_host_memory_only(
    llama_cpp_server: Callable[..., RunningServer], cache_ram_mib: int, comes_back: bool
) -> None:
    server = llama_cpp_server(slots=1, context_tokens=1024, cache_ram_mib=cache_ram_mib)
    first = fresh_words(100)
    chat(server, first)
    chat(server, fresh_words(100))
    again = chat(server, first)
    template_head = common(prompt_ids(server, "# one"), prompt_ids(server, "# two"))
    assert cached_tokens(again) == (again["usage"]["prompt_tokens"] - 1 if comes_back else template_head)
