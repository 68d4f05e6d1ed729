"""The simulated SGLang against recorded exchanges with the real one."""

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
ASKED = "others asked for other paths"
HARDWARE = "simulated hardware has times of its own"
OLD = "gauges are as old as the last prefill, 40th decode step or half minute of idleness, and half minutes are its own"
HEALTH = "the real one's /health computes a token now and then"
ALLOWED = (
    Allowed(r"body(\[\])?\.created|headers\.date|body\.data\[\]\.created", "a time of its own"),
    Allowed(r"body(\[\])?\.id", "drawn anew for each answer"),
    Allowed(r"body(\[\])?\.choices\[\]\.(delta\.content|message\.content|text)|body\.text", "words of its own"),
    Allowed(r"body\.tokens\[\]", "other numbers for other words"),
    Allowed(r"body\[\]\.choices\[\]\.matched_stop", "another stop string in another answer, another number of a token"),
    Allowed(r"headers\.content-length", "that of a body with other words"),
    Allowed(r"body\.message", "where SGLang's source lies is not told"),
    Allowed(r"body\.max_model_len", "what the model's tokeniser says, and not the server"),
)
NO_LOGPROBS = (
    Allowed(r"status|headers\.content-type", NOT_SIMULATED),
    Allowed(r"headers\.(content-length|transfer-encoding)", NOT_SIMULATED, what=("missing", "extra")),
    Allowed(r"body", NOT_SIMULATED, what=("type",)),
)
PAGES = (
    Allowed(r"page\.kvswarm_sim_.*", "the simulator's own gauges", what=("extra",)),
    Allowed(r"page\.sglang:(scheduler_)?process_.*", "of the process, not of the engine"),
    Allowed(r"page\..*_seconds(_total)?\.series\..*_(sum|bucket|total)\{.*", HARDWARE),
    Allowed(r"page\.sglang:startup_time_seconds\..*|page\..*_gb\..*", "nothing is loaded"),
    Allowed(r"page\.sglang:num_(retracted|paused)_reqs\.series\..*", "the process's number", what=("missing", "extra")),
    Allowed(r"page\.sglang:get_loads_duration_seconds", "/v1/loads is not simulated", what=("missing",)),
    Allowed(r"page\.sglang:(kv_\w+|num_\w+|\w*token_usage|gen_throughput)\..*", OLD),
    Allowed(r"page\.sglang:(prefill_effective|realtime)_tokens\..*|page\.sglang:cuda_graph_passes\..*", HEALTH),
    Allowed(r"page\.sglang:(queue_time|per_stage_req_latency)_seconds\..*", HEALTH),
    Allowed(r"page\.sglang:http_.*", ASKED, what=("value", "missing", "extra")),
)
"""In what the answers and pages may differ, and why."""

WITHOUT_LOGPROBS = {"10-completions-logprobs-stream", "11-chat-stream-logprobs"}
ELSEWHERE = {"30-chat-aborted-by-client"}
"""What test_sglang.py does."""
RESPONSES = {path.name.removesuffix(".response.http") for path in FIXTURES.glob("sglang/*.response.http")} - ELSEWHERE
SIZES = "device|mem_fraction_static|chunked_prefill_size|effective_max_running_requests_per_dp"
TOLD = (
    Allowed(r"body\..*", "what does not bear on caching, load or answers is left out", what=("missing",)),
    Allowed(r"body\.(internal_states\[\]\.)?(model|tokenizer)_path", "it loaded nothing"),
    Allowed(r"body\.version", "it says that it is simulated"),
    Allowed(rf"body\.(internal_states\[\]\.)?({SIZES})", "as the simulated hardware is"),
    Allowed(r"body\.(internal_states\[\]\.)?max_running_requests", "the real one was not told", what=("type",)),
)
"""What it may leave out of itself, and what is not as in the recording."""

INFOS = ("00-get-server_info", "00-get-model_info")
BODIES = ("00-get-v1-models", "00-get-version", "12-tokenize-chat", "12-tokenize-prompt", "12-detokenize")
METRICS = ("02-metrics-before", "07-metrics-after")


def of_response(name: str) -> list[Difference]:
    return compare(recorded(f"sglang/{name}"), answers("sglang")[name])


def of_body(name: str) -> list[Difference]:
    return [*differences(recorded_body(f"sglang/{name}.body.json"), answers("sglang")[name].content, "body")]


def of_page(name: str) -> list[Difference]:
    real = page(str(recorded_body(f"sglang/{name}.body.txt")))
    return [*differences(real, page(answers("sglang")[name].body.decode()), "page")]


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


@pytest.mark.parametrize("name", INFOS)
def test_what_it_tells_of_itself_is_as_was_recorded(name: str) -> None:
    assert unexplained(of_body(name), TOLD) == []


def test_twelve_chats_are_counted_as_was_recorded() -> None:
    """Whatever counts requests or tokens grew by the same between the first two pages."""
    first, second = ("02-metrics-before", "07-metrics-after")
    real = growth(*(str(recorded_body(f"sglang/{name}.body.txt")) for name in (first, second)))
    simulated = growth(*(answers("sglang")[name].body.decode() for name in (first, second)))
    assert simulated == real
    assert sum(1 for grown in real.values() if grown) > 20


def test_every_allowance_is_needed() -> None:
    found = [one for name in RESPONSES - WITHOUT_LOGPROBS for one in of_response(name)]
    found += [one for name in BODIES for one in of_body(name)]
    without = [one for name in WITHOUT_LOGPROBS for one in of_response(name)]
    infos = [one for name in INFOS for one in of_body(name)]
    pages = [one for name in METRICS for one in of_page(name)]
    for table, differ in ((ALLOWED, found), (NO_LOGPROBS, without), (PAGES, pages), (TOLD, infos)):
        assert [one.where for one in table if not any(one.covers(difference) for difference in differ)] == []


def test_what_is_not_simulated_is_refused_in_words() -> None:
    for name in WITHOUT_LOGPROBS:
        assert "logprobs" in answers("sglang")[name].content["message"]
