"""The check against llama.cpp's real server: exact to the token, by its answers and by its counters."""

from __future__ import annotations

from collections.abc import Callable

from harness.checks.by_hand import Checked, check_target
from harness.embedded.server import RunningServer
from harness.engines.target import Target

Start = Callable[..., RunningServer]


def counts(checked: Checked) -> list[tuple[str, int | None, int | None, int | None, int | None]]:
    """Name, prompt tokens, expected, by the answer, by the counter."""
    return [
        (
            probe.name,
            probe.prompt_tokens,
            probe.expected_cached_tokens,
            probe.usage_cached_tokens,
            probe.counter_cached_tokens,
        )
        for probe in checked.check.probes
    ]


def test_cache_that_works(llama_cpp: RunningServer) -> None:
    checked = check_target(Target(url=llama_cpp.url))
    assert checked.lexicon.exact
    cold, repeat, half = counts(checked)
    assert repeat == ("repeat", 1024, 1023, 1023, 1023)
    assert half == ("half", 1024, 511, 511, 511)
    assert cold[:3] == ("cold", 1024, 0)
    assert cold[3] == cold[4]
    assert (checked.check.verdict, checked.check.granularity_tokens) == ("works", 1)


def test_slots_of_512_tokens_get_shorter_prompts(llama_cpp_server: Start) -> None:
    server = llama_cpp_server(context_tokens=1024, slots=2)
    checked = check_target(Target(url=server.url))
    assert checked.identity.context_tokens == 512
    assert counts(checked)[1:] == [("repeat", 256, 255, 255, 255), ("half", 256, 127, 127, 127)]
    assert checked.check.verdict == "works"


def test_prompt_caching_switched_off(llama_cpp_server: Start) -> None:
    """By chats and by token ids, by answers and by counters: nothing is hit."""
    server = llama_cpp_server(context_tokens=4096, slots=1, cache_prompt=False)
    checked = check_target(Target(url=server.url))
    assert checked.check.verdict == "caching-off"
    assert counts(checked) == [
        ("cold", 1024, 0, 0, 0),
        ("repeat", 1024, 1023, 0, 0),
        ("half", 1024, 511, 0, 0),
        ("ids_cold", 1024, 0, 0, 0),
        ("ids_repeat", 1024, 1023, 0, 0),
    ]
    assert "--no-cache-prompt" in checked.check.sentence


def test_counters_alone_are_not_needed(llama_cpp: RunningServer) -> None:
    checked = check_target(Target(url=llama_cpp.url, metrics_urls=()))
    assert checked.check.verdict == "works"
    assert {probe.counter_cached_tokens for probe in checked.check.probes} == {None}
