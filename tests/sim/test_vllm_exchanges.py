"""The simulated vLLM against recorded exchanges with the real one."""

from __future__ import annotations

import pytest

from tests.sim.exchange import (
    FIXTURES,
    Allowed,
    Difference,
    compare,
    differences,
    recorded,
    recorded_body,
    unexplained,
)
from tests.sim.metrics_pages import growth, page
from tests.sim.recorded_run import answers

NOT_SIMULATED = "logprobs are not simulated: it says so with status 400"
PROCESS = "of the process, not of the engine"
ASKED = "others asked for other paths, and sizes and times of HTTP are what they are"
ALLOWED = (
    Allowed(r"body(\[\])?\.created|headers\.date|body\.data\[\](\.permission\[\])?\.created", "a time of its own"),
    Allowed(r"body(\[\])?\.id|body\.data\[\]\.permission\[\]\.id", "drawn anew for each answer"),
    Allowed(r"body(\[\])?\.system_fingerprint|body\.version", "it says that it is simulated"),
    Allowed(r"body(\[\])?\.choices\[\]\.(delta\.content|message\.content|text)|body\.prompt", "words of its own"),
    Allowed(r"body(\[\])?\.(choices\[\]\.token_ids|prompt_token_ids|tokens)\[\]", "other numbers for other words"),
    Allowed(r"body\[\]\.choices\[\]\.stop_reason", "another stop string, as it must be in another answer"),
    Allowed(r"headers\.content-length", "that of a body with other words"),
    Allowed(r"body\.data\[\]\.root", "it loaded nothing"),
)
NO_LOGPROBS = (
    Allowed(r"status|headers\.content-type", NOT_SIMULATED),
    Allowed(r"headers\.(content-length|transfer-encoding)", NOT_SIMULATED, what=("missing", "extra")),
    Allowed(r"body", NOT_SIMULATED, what=("type",)),
)
PAGES = (
    Allowed(r"page\.kvswarm_sim_.*", "the simulator's own gauges", what=("extra",)),
    Allowed(r"page\.(python|process)_.*", PROCESS),
    Allowed(r"page\..*_created\{.*", "a time of its own"),
    Allowed(r"page\.vllm:.*_seconds\.series\..*_(sum|bucket)\{.*", "simulated hardware has times of its own"),
    Allowed(r"page\.vllm:cache_config_info\..*", "memory in bytes is not simulated", what=("missing", "extra")),
    Allowed(r"page\.http_.*", ASKED, what=("value", "missing", "extra")),
)
"""In what the answers and pages may differ, and why."""

WITHOUT_LOGPROBS = {"10-completions-logprobs-stream", "11-chat-stream-logprobs"}
ELSEWHERE = {"30-chat-aborted-by-client"}
"""What test_vllm.py does."""
RESPONSES = {path.name.removesuffix(".response.http") for path in FIXTURES.glob("vllm/*.response.http")} - ELSEWHERE
BODIES = ("00-get-v1-models", "00-get-version", "01-reset", "12-tokenize-chat", "12-tokenize-prompt", "12-detokenize")
METRICS = ("02-metrics-before", "07-metrics-after", "60-caching-off-metrics")


def of_response(name: str) -> list[Difference]:
    return compare(recorded(f"vllm/{name}"), answers("vllm")[name])


def of_body(name: str) -> list[Difference]:
    return [*differences(recorded_body(f"vllm/{name}.body.json"), answers("vllm")[name].content, "body")]


def of_page(name: str) -> list[Difference]:
    real = page(str(recorded_body(f"vllm/{name}.body.txt")))
    return [*differences(real, page(answers("vllm")[name].body.decode()), "page")]


@pytest.mark.parametrize("name", sorted(RESPONSES))
def test_it_answers_as_was_recorded(name: str) -> None:
    assert unexplained(of_response(name), (*ALLOWED, *(NO_LOGPROBS if name in WITHOUT_LOGPROBS else ()))) == []


@pytest.mark.parametrize("name", BODIES)
def test_its_bodies_are_like_the_recorded_ones(name: str) -> None:
    assert unexplained(of_body(name), ALLOWED) == []


@pytest.mark.parametrize("name", METRICS)
def test_its_metrics_pages_count_what_the_recorded_ones_do(name: str) -> None:
    """Families, types, labels, buckets; and every number of requests and tokens."""
    assert unexplained(of_page(name), PAGES) == []


def test_twelve_chats_are_counted_as_was_recorded() -> None:
    """Whatever counts requests or tokens grew by the same between the first two pages."""
    first, second = ("02-metrics-before", "07-metrics-after")
    real = growth(*(str(recorded_body(f"vllm/{name}.body.txt")) for name in (first, second)))
    simulated = growth(*(answers("vllm")[name].body.decode() for name in (first, second)))
    assert simulated == real
    assert sum(1 for grown in real.values() if grown) > 20


def test_every_allowance_is_needed() -> None:
    found = [one for name in RESPONSES - WITHOUT_LOGPROBS for one in of_response(name)]
    found += [one for name in BODIES for one in of_body(name)]
    without = [one for name in WITHOUT_LOGPROBS for one in of_response(name)]
    pages = [one for name in METRICS for one in of_page(name)]
    for table, differ in ((ALLOWED, found), (NO_LOGPROBS, without), (PAGES, pages)):
        assert [one.where for one in table if not any(one.covers(difference) for difference in differ)] == []


def test_what_is_not_simulated_is_refused_in_words() -> None:
    for name in WITHOUT_LOGPROBS:
        assert "logprobs" in answers("vllm")[name].content["error"]["message"]
