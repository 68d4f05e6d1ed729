"""What a llama.cpp answer is made of, against figures of real answers."""

from __future__ import annotations

import pytest

from harness.sim.generation import Generation
from harness.sim.manners.llama_cpp_metrics import Metrics
from harness.sim.manners.llama_cpp_refusal import Refusal, parsed
from harness.sim.manners.llama_cpp_timings import timings
from harness.sim.manners.stops import spoken
from harness.sim.request import Plan
from harness.sim.scheduler import Step
from tests.sim.exchange import recorded

RECORDED = [
    recorded(f"{folder}/{name}").content
    for folder in ("llama-server", "xllamacpp")
    for name in ("chat_json_warm", "chat_json_stop_string", "unknown_model")
]


@pytest.mark.parametrize("body", RECORDED)
def test_rates_follow_from_counts_and_times_as_in_the_real_server(body: dict[str, dict[str, float]]) -> None:
    real = body["timings"]
    counts = int(real["cache_n"]), int(real["prompt_n"]), real["prompt_ms"], int(real["predicted_n"])
    assert timings(*counts, real["predicted_ms"]) == real


def test_one_token_has_no_rate() -> None:
    told = timings(13, 1, 1.167, 1, 0.001)
    assert (told["predicted_ms"], told["predicted_per_token_ms"], told["predicted_per_second"]) == (0.001, 0.0, 0.0)


def test_an_answer_ends_inside_the_token_that_completes_a_stop_string() -> None:
    """As seen of the real server, which said " allow map rail value" without stop strings."""
    tokens = [" allow", " map", " rail", " value"]
    assert spoken(tokens, ["ap"]).pieces == (" allow", " m")
    assert spoken(tokens, ["ap"]).text == " allow m"
    assert spoken(tokens, ["ap"]).stop == "ap"
    assert spoken(tokens, ["map"]).pieces == (" allow", " ")
    assert spoken(tokens, ["rail", "ap ra"]).stop == "ap ra"


def test_text_that_may_become_a_stop_string_is_held_back() -> None:
    """As seen of the real server, which said " fast hold rather appear hold since" without stop strings."""
    said = spoken([" fast", " hold", " rather", " appear", " hold", " since"], [" hold ye"])
    assert said.pieces == (" fast", "", " hold rather", " appear", "", " hold since")
    assert said.stop is None


def test_what_is_held_back_at_the_last_token_is_in_the_whole_answer_alone() -> None:
    said = spoken([" fast", " hold"], [" hold ye"])
    assert (said.pieces, said.text) == ((" fast", ""), " fast hold")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "line 1, column 1: attempting to parse an empty input"),
        (
            b'{"messages": [{"role": "user", ',
            "line 1, column 32: syntax error while parsing object key - unexpected end",
        ),
        (b'{"a": [1,', "line 1, column 10: syntax error while parsing value - unexpected end of input; expected '['"),
        (b"x", "line 1, column 1: syntax error while parsing value - invalid literal; last read: 'x'"),
    ],
)
def test_a_body_that_is_no_json_is_refused_in_the_real_words(body: bytes, words: str) -> None:
    with pytest.raises(Refusal) as caught:
        parsed(body)
    assert caught.value.status == 400
    assert f"parse error at {words}" in caught.value.error["message"]


def served(metrics: Metrics, prompt: int, cached: int, answer: int) -> None:
    """A request that takes 2 s for its prompt and 1 s for its answer."""
    generation = Generation(prompt_ids=range(prompt), max_tokens=answer)
    metrics.arrived(generation)
    generation.admitted_s, generation.cached_tokens = 5.0, cached
    metrics.admitted(generation)
    for _ in range(answer):
        metrics.stepped(Step(Plan(), 0.0, 1.0, 0, 0, ()))
    generation.first_token_s = 7.0
    metrics.first_token(generation)
    generation.output_ids = [1] * answer
    generation.ended_s, generation.end = 8.0, "length"
    metrics.ended(generation)


def told(metrics: Metrics) -> dict[str, str]:
    lines = [line for line in metrics.page().splitlines() if not line.startswith("#")]
    return {name.partition(":")[2]: value for name, value in (line.split() for line in lines)}


def test_the_rates_are_those_since_the_page_was_last_read() -> None:
    metrics = Metrics()
    served(metrics, prompt=130, cached=30, answer=11)
    first, second = told(metrics), told(metrics)
    assert (first["prompt_tokens_seconds"], first["predicted_tokens_seconds"]) == ("50", "10")
    assert (second["prompt_tokens_seconds"], second["predicted_tokens_seconds"]) == ("0", "0")
    assert (second["prompt_tokens_total"], second["tokens_predicted_total"]) == ("100", "11")
    assert (second["n_tokens_max"], second["n_decode_total"], second["n_busy_slots_per_decode"]) == ("140", "11", "1")


def test_numbers_have_six_digits_as_the_real_page_has_them() -> None:
    """Seen of the real server after 1,037,680 tokens from the cache, or a few less or more."""
    metrics = Metrics()
    served(metrics, prompt=1_037_690, cached=1_037_683, answer=1)
    assert told(metrics)["prompt_tokens_cached_total"] == "1.03768e+06"


def test_a_request_counts_as_deferred_until_it_has_a_slot() -> None:
    metrics = Metrics()
    generation = Generation(prompt_ids=[1], max_tokens=1)
    metrics.arrived(generation)
    assert (told(metrics)["requests_processing"], told(metrics)["requests_deferred"]) == ("0", "1")
    metrics.admitted(generation)
    assert (told(metrics)["requests_processing"], told(metrics)["requests_deferred"]) == ("1", "0")
