"""Lengths and shared prefixes as llama.cpp's real server counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import requests

from harness.embedded.server import RunningServer
from harness.engines.detect import connect
from harness.engines.target import Target
from harness.workload.learning import learn
from harness.workload.scenario import Scenario
from harness.workload.text import Renderer
from harness.workload.workload import Workload
from tests.workload.samples import agent_loop, long_document, multi_round, pairs, scripted_prompts, shared_by_paths


def test_the_server_counts_and_reuses_exactly_what_the_paths_say(
    llama_cpp_server: Callable[..., RunningServer],
) -> None:
    # With one slot and no states kept aside, a request can reuse what it has in common with the one before it.
    server = llama_cpp_server(slots=1, cache_ram_mib=0)
    engine = connect(Target(url=server.url))
    scenarios: list[Scenario] = [
        agent_loop(steps=3),
        multi_round(rounds=3, sharing=[{"name": "tenant", "fan_out": 2, "tokens": 30}]),
        long_document(questions=3),
        agent_loop(steps=3, fault={"kind": "timestamp-first"}),
        agent_loop(steps=5, fault={"kind": "tools-shuffled", "rate": 0.7}),
        multi_round(rounds=4, fault={"kind": "preamble-first", "rate": 0.5}),
        long_document(questions=4, fault={"kind": "whitespace-changed", "rate": 0.7}),
        long_document(questions=3, corpus="words", fault={"kind": "passages-reranked"}),
    ]
    for scenario in scenarios:
        lexicon = learn(engine.count_text, engine.count_chat, engine.chat_tokens, scenario)
        assert lexicon.exact
        renderer, before = Renderer(lexicon, scenario), None
        for prompt in scripted_prompts(Workload(scenario, "real").session(0)):
            body: dict[str, Any] = {"messages": renderer.chat(prompt), "max_tokens": 1, "id_slot": 0, "temperature": 0}
            usage = requests.post(f"{server.url}/chat/completions", json=body, timeout=60).json()["usage"]
            path = pairs(renderer.path(prompt))
            assert usage["prompt_tokens"] == sum(tokens for _, tokens in path)
            if before is not None:
                reused = shared_by_paths(before, path, len(lexicon.words))
                assert usage["prompt_tokens_details"]["cached_tokens"] == reused
            before = path
