"""The cache models are given the first requests of a target; what they say is of these alone, and says so."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from harness.analysis import Run, load
from harness.analysis.report import as_json, render
from harness.analysis.request_log import Coverage, read_log
from harness.analysis.run import MODELLED, parse_modelled
from harness.analysis.summary import summarise
from harness.errors import InputError
from tests.analysis.prompts import asked
from tests.analysis.rows import Row, target

MakeRun = Callable[..., Run]
SGLANG = {"engine": "sglang", "model": "m", "granularity_tokens": 1, "capacity_tokens": 10_000}


def chat() -> list[Row]:
    """Five requests for the same 100 tokens, a second after one another; the third and the last hit nothing."""
    hits = (0, 99, 0, 99, 0)
    return [
        asked([(1, 100)], at_s, at_s + 0.1, cached, request_id=f"q{at_s}", t_due=0 if at_s == 3 else 1_000 + at_s)
        for at_s, cached in enumerate(hits)
    ]


def first(make_run: MakeRun, modelled: int | None, rows: list[Row], **changes: Any) -> Run:
    made = make_run(rows, targets=[target(identity=SGLANG)], **changes)
    return load(made.recorded, modelled=modelled)


def test_the_waterfall_is_of_the_first_requests_alone_its_measured_too(make_run: MakeRun) -> None:
    summary = summarise(first(make_run, 3, chat()).only_target())
    steps = summary.waterfall.steps
    assert steps is not None
    assert (steps.requests, steps.prompt_tokens, steps.shareable) == (3, 300, 200)
    assert (steps.expected, steps.measured, steps.unexplained) == (198, 99, 99)
    assert summary.waterfall.traffic == 3
    assert sum(window.touched_tokens > 0 for window in summary.working_set) == 3
    assert summary.coverage == Coverage(modelled=3, of=5)
    # All else is of all.
    assert (summary.hit_rate.requests, summary.hit_rate.cached_tokens) == (5, 198)


def test_the_first_are_the_first_that_were_sent_wherever_they_stand(make_run: MakeRun) -> None:
    """The fourth was due first, so its row is the first one."""
    run = first(make_run, 3, chat()).only_target()
    assert run.requests["request_id"].tolist()[0] == "q3"
    assert read_log(run).rows["request_id"].tolist() == ["q0", "q1", "q2"]


def test_of_requests_sent_at_the_same_moment_no_more_are_taken_than_asked_for(make_run: MakeRun) -> None:
    rows = [asked([(1, 100)], 1.0, 1.1, 0, request_id=str(number)) for number in range(4)]
    log = read_log(first(make_run, 3, rows).only_target())
    assert (log.rows["request_id"].tolist(), log.coverage) == (["0", "1", "2"], Coverage(3, 4))


def test_what_never_reached_the_engine_is_not_among_them(make_run: MakeRun) -> None:
    rows = chat()
    rows[0]["status"] = "http_error"
    rows[1] |= {"status": "refused", "t_send": None}
    log = read_log(first(make_run, 2, rows).only_target())
    assert (log.rows["request_id"].tolist(), log.coverage) == (["q2", "q3"], Coverage(2, 3))


def test_after_a_reset_they_begin_with_the_load(make_run: MakeRun) -> None:
    rows = chat()
    rows[0]["phase"] = "warmup"
    made = make_run(rows, targets=[target(identity=SGLANG, cold_start="reset: emptied")])
    log = read_log(load(made.recorded, modelled=2).only_target())
    assert (log.rows["request_id"].tolist(), log.coverage) == (["q1", "q2"], Coverage(2, 4))


@pytest.mark.parametrize("modelled", [5, None, MODELLED])
def test_where_all_are_modelled_nothing_is_said_of_it(modelled: int | None, make_run: MakeRun) -> None:
    run = first(make_run, modelled, chat())
    assert summarise(run.only_target()).coverage == Coverage(5, 5)
    assert "in order of sending" not in printed(run)


def printed(run: Run) -> str:
    out = io.StringIO()
    render([run], Console(file=out, width=200))
    return out.getvalue()


def test_each_table_and_sentence_of_the_models_says_what_it_covers(make_run: MakeRun) -> None:
    rows = chat()
    rows[0]["cached_tokens"] = 100  # nobody had sent it before
    run = first(make_run, 3, rows)
    text = printed(run)
    line = "Of the first 3 of 5 requests, in order of sending; --modelled all takes all."
    assert text.count(line) == 2  # waterfall, working set; the rows have no levels
    assert "66.7 % of all prompt tokens (in the first 3 of 5 requests)" in text
    assert "Note: 1 of 3 requests (in the first 3 of 5 requests) hit 100 tokens that no recorded request" in text
    (whole,) = json.loads(as_json([run]))["runs"]
    assert whole["targets"][0]["coverage"] == {"modelled": 3, "of": 5}


def test_the_option_takes_a_number_or_all() -> None:
    assert (parse_modelled("70000"), parse_modelled("all"), parse_modelled(None)) == (70_000, None, MODELLED)
    for text in ("none", "-1", "0", "1.5"):
        with pytest.raises(InputError, match=f"--modelled {text}: give a number of requests from 1 on, or all"):
            parse_modelled(text)
