"""Several replicas, each with a cache of its own: what routing loses is what another one held."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.expected import expect, replay
from harness.analysis.expected_engines import engine_cache
from harness.analysis.expected_replicas import expect_on_replicas, replica_names
from harness.analysis.request_log import RequestLog, read_log
from harness.analysis.waterfall import waterfall
from tests.analysis.rows import Row, target
from tests.analysis.test_waterfall import A, B, fall_of, lost, steps_of
from tests.analysis.test_waterfall_sums import ENGINES, FEW, WORDS, logs
from tests.analysis.waterfall_rows import LLAMA_CPP, MLX_LM, SGLANG, VLLM, sent, target_run

TWO_PAGES = {"metrics_urls": ["http://a/metrics", "http://b/metrics"]}


@pytest.mark.parametrize(("identity", "whole"), [(SGLANG, 99), (LLAMA_CPP, 99), (MLX_LM, 99)])
def test_what_another_replica_holds_is_lost_to_routing(identity: dict[str, Any], whole: int) -> None:
    rows = [sent([(A, 100)], 10 * number, replica=name) for number, name in enumerate(["0", "1", "0", "1"])]
    # Of three that share 100 tokens, only the first comes to a replica that does not have them.
    assert lost(steps_of(rows, identity)) == (300, 3, 0, 0, whole, 2 * whole)


def test_each_replica_has_the_room_that_one_of_them_tells() -> None:
    # Ten blocks each. On one replica B takes nearly all of A's, as on one server.
    rows = [sent([(A, 128)], 0), sent([(B, 128)], 10), sent([(A, 128)], 20)]
    told = VLLM | {"capacity_tokens": 160, "by_hand": ["capacity_tokens"]}
    on_one = [row | {"replica": "0"} for row in rows]
    assert lost(steps_of(on_one, told, target=TWO_PAGES)) == (128, 16, 0, 96, 0, 16)
    # With B elsewhere, A stays; asked for there, it is lost to routing.
    for last, expected in (("0", (128, 16, 0, 0, 0, 112)), ("1", (128, 16, 0, 0, 112, 0))):
        spread = [row | {"replica": name} for row, name in zip(rows, ("0", "1", last), strict=True)]
        assert lost(steps_of(spread, told, target=TWO_PAGES)) == expected


def test_the_report_names_the_replicas_and_takes_nothing_for_granted() -> None:
    rows = [sent([(A, 100)], number, replica=str(number % 2)) for number in (0, 1)]
    fall = fall_of(rows, SGLANG, target=TWO_PAGES)
    assert fall.model == "SGLang's radix tree, pages of 1 token, room for 10,000 tokens, in each of 2 replicas"
    assert "routing" not in fall.unknown
    assert fall.assumptions == ()


def test_a_request_that_names_no_replica_is_said_to_be_lenient() -> None:
    rows = [sent([(A, 100)], 0, replica="0"), sent([(A, 100)], 10), sent([(A, 100)], 20, replica="1")]
    fall = fall_of(rows, SGLANG, target=TWO_PAGES)
    assert fall.steps is not None
    # The second one is taken to have gone to replica 0, and the third one finds nothing of it on replica 1.
    assert lost(fall.steps) == (200, 2, 0, 0, 99, 99)
    assert [sentence.split(":")[0] for sentence in fall.assumptions] == [
        "1 of 3 requests do not tell which replica they went to"
    ]


@st.composite
def spread_logs(draw: st.DrawFn) -> list[Row]:
    return [row | {"replica": draw(st.sampled_from(["0", "1", "2", None]))} for row in draw(logs())]


def log_of(rows: list[Row]) -> RequestLog:
    return read_log(target_run(rows, {"engine": "openai"}, lexicon={"words": WORDS}))


@pytest.mark.parametrize("identity", ENGINES.values(), ids=ENGINES)
@FEW
@given(rows=spread_logs())
def test_no_step_gives_back_what_one_before_it_took(identity: dict[str, Any], rows: list[Row]) -> None:
    log = log_of(rows)
    found = expect_on_replicas(log, engine_cache(target(identity=identity), replica_names(log)))
    by_send = [found.shareable, found.in_blocks]
    by_lookup = [found.computed, *(step for step in (found.kept, found.found) if step is not None)]
    # A request that waits for a slot may find what others computed that were sent after it.
    chains = [by_send, by_lookup] if identity is LLAMA_CPP else [[*by_send, *by_lookup]]
    for steps in chains:
        for values in zip(*steps, strict=True):
            assert list(values) == sorted(values, reverse=True)


@pytest.mark.parametrize("identity", ENGINES.values(), ids=ENGINES)
@FEW
@given(rows=spread_logs())
def test_each_replica_finds_what_it_would_find_if_it_were_alone(identity: dict[str, Any], rows: list[Row]) -> None:
    log = log_of(rows)
    cache = engine_cache(target(identity=identity), replica_names(log))
    found = expect_on_replicas(log, cache).found
    replicas = [row["replica"] for row in sorted(rows, key=lambda row: int(row["t_send"]))]
    for name in cache.replicas:
        own = [request for request, replica in zip(log.requests, replicas, strict=True) if replica == name]
        alone = expect(own, engine_cache(target(identity=identity))).found
        assert (found is None) == (alone is None)
        if found is not None:
            assert [hit for hit, replica in zip(found, replicas, strict=True) if replica == name] == alone


@pytest.mark.parametrize("engine", ["vllm", "sglang", "sglang in pages", "mlx-lm"])
@FEW
@given(rows=spread_logs())
def test_kept_is_what_the_best_replica_would_have_answered(engine: str, rows: list[Row]) -> None:
    """By asking a copy of each replica's cache."""
    log = log_of(rows)
    cache = engine_cache(target(identity=ENGINES[engine]), replica_names(log))
    assert cache.model is not None
    models = {name: cache.model() for name in cache.replicas}
    replicas = iter([row["replica"] for row in sorted(rows, key=lambda row: int(row["t_send"]))])
    best: list[int] = []

    class Everywhere:
        """Each request at the cache of its replica."""

        def admit(self, prompt: Any) -> Any:
            best.append(max((copy.deepcopy(model).admit(prompt).cached_tokens for model in models.values()), default=0))
            place = next(replicas)
            return place, None if place is None else models[place].admit(prompt)

        def __getattr__(self, moment: str) -> Any:
            def pass_on(admitted: Any, *output: Any) -> None:
                place, admission = admitted
                if place is not None:
                    getattr(models[place], moment)(admission, *output)

            return pass_on

    everywhere: Any = Everywhere()
    replay(log.requests, lambda request: everywhere.admit(request.prompt), everywhere)
    assert expect_on_replicas(log, cache).kept == best


@pytest.mark.parametrize("identity", ENGINES.values(), ids=ENGINES)
@FEW
@given(rows=spread_logs())
def test_the_steps_add_up(identity: dict[str, Any], rows: list[Row]) -> None:
    run = target_run(rows, identity, lexicon={"words": WORDS})
    steps = waterfall(read_log(run), run.target).steps
    if steps is not None:
        kept = steps.shareable - steps.granularity - steps.in_flight - (steps.capacity or 0) - (steps.routing or 0)
        assert kept == steps.expected
