"""The collector against llama.cpp's own server."""

from __future__ import annotations

from typing import Any

import requests

from harness.collector.sampler import Collector, Row
from harness.embedded.server import RunningServer
from harness.engines.detect import connect
from harness.engines.target import Target

TEXT = "# " + " ".join(["the library opens at nine in the morning"] * 20)


def test_the_deltas_of_the_counters_are_what_the_requests_reported(llama_cpp: RunningServer) -> None:
    target = Target(url=llama_cpp.url)
    engine = connect(target)
    rows: list[Row] = []
    collector = Collector(target, rows.extend)
    assert collector.settle("before", engine.is_idle)

    prompt_tokens = cached_tokens = 0
    for question in ("# one", "# two", "# one"):
        chat = [{"role": "system", "content": TEXT}, {"role": "user", "content": question}]
        body: dict[str, Any] = {"model": engine.model, "messages": chat, "max_tokens": 2}
        usage = requests.post(f"{target.url}/chat/completions", json=body, timeout=60).json()["usage"]
        prompt_tokens += usage["prompt_tokens"]
        cached_tokens += usage["prompt_tokens_details"]["cached_tokens"]

    assert collector.settle("after", engine.is_idle)
    counters = engine.hit_counters
    assert counters is not None
    cached, computed = (_delta(rows, names[0]) for names in (counters.cached, counters.prompt))
    assert cached_tokens > 0
    assert (cached, cached + computed) == (cached_tokens, prompt_tokens)
    assert not counters.prompt_includes_cached


def _delta(rows: list[Row], name: str) -> float:
    before, after = (
        next(row["value"] for row in rows if row["name"] == name and row["moment"] == moment)
        for moment in ("before", "after")
    )
    return float(after - before)
