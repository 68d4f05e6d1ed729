from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from harness.analysis import Run
from harness.analysis.contamination import UnexplainedHits, unexplained_hits
from harness.analysis.report import as_json, render
from harness.analysis.summary import summarise
from harness.cache.prompt import common_tokens
from harness.record.manifest import MetricNames, Phase
from tests.analysis.prompts import SECOND, START, asked, log_of
from tests.analysis.rows import CACHED, PROMPT, Row, request, scrape, target

MakeRun = Callable[..., Run]

HEAD, TAIL = (1, 4), (2, 3)
TEMPLATE = {
    "opener_tokens": 1,
    "head": {"user": 4},
    "between": {"user>assistant": 5, "assistant>user": 6},
    "tail": {"user": 3},
    "head_known": True,
    "reply_after_tail": False,
}
COLD: Row = {"cold_start": "nonce n: no earlier run sent these texts", "lexicon": {"template": TEMPLATE}}
ALLOWED = 4 + 6 + 3 + 1 + 3
"""The longest piece of each kind, an opener, and three words by chance."""


def chat(*segments: tuple[int, int]) -> list[tuple[int, int]]:
    return [HEAD, *segments, TAIL]


def told(make_run: MakeRun, rows: list[Row], samples: list[Row] | None = None, **changes: Any) -> tuple[list[str], ...]:
    """(problems, notes) of a run with one target."""
    of_target = COLD | changes.pop("of_target", {})
    run = make_run(rows, samples or [], targets=[target(**of_target)], **changes)
    found = summarise(run.only_target()).contamination
    return list(found.problems), list(found.notes)


# --- hits ----------------------------------------------------------------------------------------------------------


def test_hits_that_nothing_in_the_run_explains_are_a_problem(make_run: MakeRun) -> None:
    rows = [
        asked(chat((10, 500)), 0, 1, cached=400),
        asked(chat((10, 300), (11, 200)), 2, 3, cached=1_004),
        asked(chat((12, 900)), 4, 5, cached=0),
        asked(chat((13, 900)), 6, 7, cached=None),
    ]

    # The first shares nothing; the second hit 1,004 tokens, of which the first one had sent the head and 300.
    assert told(make_run, rows) == (
        [
            "2 of 3 requests hit 1,100 tokens that no recorded request of this run had sent to this target before: the "
            "cache was not cold (an earlier run with the same texts, or another client)"
        ],
        [],
    )


@pytest.mark.parametrize(
    ("cold_start", "is_problem"),
    [
        ("nonce n: no earlier run sent these texts", True),
        ("nonce n, as the reset was not complete: nothing was emptied", True),
        ("reset: all 4 slots were emptied", True),
        ("salt n: the cache is shared with no request that has another cache salt", True),
        ("none: the cache may hold texts of earlier runs with the same seed", False),
        ("", False),
    ],
)
def test_it_is_a_note_where_nobody_said_that_the_cache_is_cold(
    make_run: MakeRun, cold_start: str, is_problem: bool
) -> None:
    problems, notes = told(make_run, [asked(chat((10, 500)), 0, 1, 400)], of_target={"cold_start": cold_start})

    assert (len(problems), len(notes)) == (is_problem, not is_problem)


def test_a_clean_run_says_nothing(make_run: MakeRun) -> None:
    rows = [
        asked(chat((10, 500)), 0, 1, cached=0, phase="warmup"),
        asked(chat((10, 500), (11, 9)), 2, 3, cached=504),
        asked(chat((10, 500), (11, 9)), 4, 5, cached=515),
    ]

    assert told(make_run, rows) == ([], [])


@pytest.mark.parametrize(("beyond", "requests"), [(ALLOWED, 0), (ALLOWED + 1, 1)])
def test_a_few_tokens_of_the_template_are_no_sign(make_run: MakeRun, beyond: int, requests: int) -> None:
    rows = [asked(chat((10, 50), (11, 100)), 0, 1, 0), asked(chat((10, 50), (12, 100)), 2, 3, cached=54 + beyond)]
    run = make_run(rows, targets=[target(**COLD)])

    assert summarise(run.only_target()).contamination.hits.requests == requests


def test_lengths_that_are_off_the_plan_are_allowed_for(make_run: MakeRun) -> None:
    rows = [
        asked(chat((10, 50), (11, 100)), 0, 1, cached=0, prompt_tokens=197),
        asked(chat((10, 50), (12, 100)), 2, 3, cached=54 + ALLOWED + 40),
    ]

    assert told(make_run, rows) == ([], [])


def hits(*rows: Row, tail_tokens: int = 3) -> UnexplainedHits:
    return unexplained_hits(log_of(rows), allowance_tokens=0, tail_tokens=tail_tokens)


def test_the_answer_to_an_earlier_turn_is_explained() -> None:
    first = asked(chat((10, 100)), 0, 1, 0, output_tokens=40)
    # What was generated stands where the prompt had ended: 4 + 100 + 3 of the template + 40.
    second = [HEAD, (10, 100), (3, 3), (11, 40), (4, 6), (12, 20), TAIL]

    assert hits(first, asked(second, 5, 6, cached=147)).requests == 0
    assert hits(first, asked(second, 5, 6, cached=148)) == UnexplainedHits(requests=1, tokens=1, compared=2)


def test_the_answer_to_a_prompt_that_parts_earlier_explains_nothing() -> None:
    first = asked(chat((10, 100), (11, 50)), 0, 1, 0, output_tokens=40)

    assert hits(first, asked(chat((10, 100), (12, 50)), 5, 6, cached=120)).tokens == 16


def test_a_request_that_overtook_another_may_have_left_what_that_one_hit() -> None:
    late = asked(chat((10, 100)), 1, 1.5, cached=0)

    assert hits(asked(chat((10, 100)), 0, 2, cached=106), late).requests == 0
    assert hits(asked(chat((10, 100)), 0, 1, cached=106), late).requests == 1


def test_a_request_does_not_explain_itself_nor_one_with_another_salt() -> None:
    alone = asked(chat((10, 100)), 0, 1, cached=106)
    salted = [
        asked(chat((10, 100)), at, at + 0.5, cached, cache_salt=salt) for at, cached, salt in ((0, 0, "a"), (1, 9, "b"))
    ]

    assert hits(alone).tokens == 106
    # The first 104 of its tokens are those of the longer one; its own answer stands behind its own prompt.
    assert hits(asked(chat((10, 100), (11, 50)), 0, 1, cached=0), asked(chat((10, 100)), 2, 3, cached=106)).tokens == 2
    assert hits(*salted).tokens == 9


def test_a_failed_request_explains_what_it_may_have_left() -> None:
    failed = asked(chat((10, 100)), 0, None, None, status="timeout")

    assert hits(failed, asked(chat((10, 100), (11, 9)), 1, 2, cached=104)) == UnexplainedHits(0, 0, 1)


PROMPTS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([2, 5, 9])), min_size=1, max_size=4)
TRAFFIC = st.lists(st.tuples(PROMPTS, st.integers(0, 9), st.integers(1, 9), st.integers(0, 30)), max_size=12)


@given(TRAFFIC)
def test_it_is_what_looking_at_every_pair_gives(traffic: list[Any]) -> None:
    traffic = sorted(traffic, key=lambda sent: sent[1])
    rows = [asked(path, at, at + took, cached, output_tokens=None) for path, at, took, cached in traffic]
    excesses = []
    for number, (path, at, took, cached) in enumerate(traffic):
        others = [other for place, (other, sent, _, _) in enumerate(traffic) if place != number and sent < at + took]
        excesses.append(cached - max((common_tokens(path, other) for other in others), default=0))

    found = hits(*rows, tail_tokens=0)
    assert found.tokens == sum(excess for excess in excesses if excess > 0)
    assert found.requests == sum(excess > 0 for excess in excesses)


# --- counters ------------------------------------------------------------------------------------------------------


def counters(prompt: int, cached: int) -> list[Row]:
    return [
        *scrape(START - SECOND, "warmup_end", {"hits_total": 0, "queries_total": 0}),
        *scrape(START + 100 * SECOND, "after", {"hits_total": cached, "queries_total": prompt}),
    ]


OWN = [request(prompt_tokens=1_000, cached_tokens=0), request(prompt_tokens=1_000, cached_tokens=900)]


def test_counters_that_moved_more_than_the_requests_explain_are_a_problem(make_run: MakeRun) -> None:
    problems, _ = told(make_run, OWN, counters(prompt=5_000, cached=2_100))

    assert problems == [
        "the server's counters count 3,000 prompt tokens (1,200 of them cached) more than this run's requests explain: "
        "another client used it, or rows of the run are missing"
    ]


def test_counters_that_moved_as_the_requests_did_say_nothing(make_run: MakeRun) -> None:
    assert told(make_run, OWN, counters(prompt=2_000, cached=900)) == ([], [])
    assert told(make_run, OWN, counters(prompt=1_000, cached=0)) == ([], [])
    assert told(make_run, OWN) == ([], [])


def test_a_request_that_reports_nothing_may_have_cost_its_planned_prompt(make_run: MakeRun) -> None:
    rows = [*OWN, request(status="cancelled", planned_prompt_tokens=700)]
    unplanned = [*rows, request(status="timeout")]
    unsent = [*rows, request(status="refused", t_send=None, planned_prompt_tokens=5_000)]

    assert told(make_run, rows, counters(2_700, 900)) == ([], [])
    assert "1 prompt tokens more" in told(make_run, rows, counters(2_701, 900))[0][0]
    assert told(make_run, unplanned, counters(9_000, 900)) == ([], [])
    assert "1 prompt tokens more" in told(make_run, unsent, counters(2_701, 900))[0][0]


@pytest.mark.parametrize(
    ("version", "is_problem"), [("0.32.0", True), ("0.27.0rc1", True), ("0.26.1", False), (None, False)]
)
def test_releases_of_vllm_that_count_a_prompt_again_are_only_noted(
    make_run: MakeRun, version: str | None, is_problem: bool
) -> None:
    identity = {"engine": "vllm", "version": version}
    problems, notes = told(make_run, OWN, counters(5_000, 900), of_target={"identity": identity})

    assert (len(problems), len(notes)) == (is_problem, not is_problem)
    assert all("vLLM before 0.27" in note for note in notes)


# --- running requests ----------------------------------------------------------------------------------------------

RUNNING = MetricNames(meaning="running_requests", names=("running",), kind="gauge", counts="running requests")
MEASURE = [Phase(phase="measure", targets=("t",), start_ns=START, end_ns=START + 100 * SECOND)]


def running(at_s: float, value: float, duration_s: float = 0.01) -> list[Row]:
    values = {"running": value, "scrape_duration_seconds": duration_s}
    return scrape(START + round(at_s * SECOND), "periodic", values)


def crowd(make_run: MakeRun, samples: list[Row], engine: str = "e") -> list[str]:
    rows = [asked([(1, 10)], 10, 12), asked([(2, 10)], 11, 13), asked([(3, 10)], 40, None, status="timeout")]
    of_target = {"metrics": [CACHED, PROMPT, RUNNING], "identity": {"engine": engine}}
    return told(make_run, rows, samples, of_target=of_target, phases=MEASURE)[0]


def test_more_running_requests_than_the_run_had_in_flight_are_a_problem(make_run: MakeRun) -> None:
    samples = [*running(5, 0), *running(10.5, 2), *running(11.5, 5), *running(14.5, 0)]

    assert crowd(make_run, samples) == [
        "at 22:13:31.5 UTC the server had 5 requests running, and this run at most 2 in flight, as 1 more scrapes do: "
        "another client used it, or rows of the run are missing"
    ]


@pytest.mark.parametrize(
    "samples",
    [
        [*running(10.5, 1), *running(11.5, 2), *running(20, 0)],
        # The second request began while the page was on its way, and the first one had just ended.
        [*running(10.5, 2, duration_s=0.6), *running(13.1, 2)],
        # Nobody knows when the last one ended.
        running(90, 1),
        # Before the measured phase.
        running(-1, 7),
        running(10.5, float("nan")),
    ],
)
def test_what_the_run_can_have_had_in_flight_is_no_sign(make_run: MakeRun, samples: list[Row]) -> None:
    assert crowd(make_run, samples) == []


def test_a_gauge_that_may_be_old_is_not_asked(make_run: MakeRun) -> None:
    assert crowd(make_run, running(11.5, 5), engine="sglang") == []


# --- report --------------------------------------------------------------------------------------------------------


def test_the_report_and_its_json_say_it(make_run: MakeRun) -> None:
    run = make_run([asked(chat((10, 500)), 0, 1, 400)], targets=[target(**COLD)])
    noted = make_run([asked(chat((10, 500)), 0, 1, 400)], targets=[target(**COLD | {"cold_start": "none: ..."})])
    out = io.StringIO()
    render([run, noted], Console(file=out, width=400))

    assert "Problem: run 1: contamination: 1 of 1 requests hit 400 tokens" in out.getvalue()
    assert "Note: run 2: 1 of 1 requests hit 400 tokens" in out.getvalue()
    found = json.loads(as_json([run]))["runs"][0]["targets"][0]["contamination"]
    assert found["hits"] == {"requests": 1, "tokens": 400, "compared": 1}
    assert (found["counts"], found["crowd"]) == ({"prompt_tokens": None, "cached_tokens": None}, None)
    assert len(found["problems"]) == 1
    (target_as_json,) = json.loads(as_json([run]))["runs"][0]["targets"]
    assert [one["name"] for one in target_as_json["problems"]] == ["contamination"]
