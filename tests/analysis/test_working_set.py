"""The working set over time: by hand, and prefix by prefix on logs that hypothesis makes."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.analysis.request_log import LoggedRequest, read_log
from harness.analysis.time_windows import WINDOWS
from harness.analysis.working_set import InUse, working_sets
from harness.workload.content import content_id
from tests.analysis.rows import Row
from tests.analysis.waterfall_rows import sent, target_run

A, B, C, D = 1, 2, 3, 4
SECOND = 10**9


def sets_of(rows: list[Row]) -> tuple[InUse, ...]:
    return working_sets(read_log(target_run(rows, {})))


def at(second: int, path: list[tuple[int, int]], **changes: Any) -> Row:
    return sent(path, second * SECOND, output_tokens=0, **changes)


def test_what_was_sent_and_is_sent_again_is_in_use_in_between() -> None:
    rows = [
        at(0, [(A, 100), (C, 7)]),
        at(2, [(B, 50)]),
        at(4, [(A, 100), (D, 9)]),
        at(7, [(B, 50)]),
        at(10, [(A, 100), (D, 9)]),
    ]
    windows = sets_of(rows)
    assert [window.key for window in windows] == list(range(WINDOWS))
    # Requests are in windows 0, 1 (2 s of 10 s and 1 ns), 3, 6 and 9.
    # A is in use until 10 s, B from 2 to 7 s, D from 4 s on, C never. A window begins as the one before it ended.
    assert [window.working_set_tokens for window in windows] == [100, 150, 150, 159, 159, 159, 159, 109, 109, 109]
    assert [window.touched_tokens for window in windows] == [107, 50, 0, 109, 0, 0, 50, 0, 0, 109]


def test_windows_are_of_equal_length_from_the_first_measured_request_on() -> None:
    windows = sets_of([at(5, [(A, 9)], phase="warmup"), at(10, [(A, 9)]), at(20, [(A, 9)])])
    assert [round(window.start_s, 6) for window in windows] == list(range(10))
    assert [round(window.end_s, 6) for window in windows] == list(range(1, 11))
    # What a window begins with: here the warm-up's.
    assert [window.working_set_tokens for window in windows] == [9] * 10


def test_an_answer_is_in_use_until_it_is_sent_back() -> None:
    live = content_id("r1", 0, "live", 7, 0)
    first = at(0, [(A, 60)], session=7, turn=0) | {"output_tokens": 20}
    rows = [first, at(5, [(B, 5)]), at(10, [(A, 60), (live, 20), (C, 5)], session=7, turn=1)]
    assert [window.working_set_tokens for window in sets_of(rows)][4] == 80
    assert sets_of(rows)[0].touched_tokens == 80


def test_prompts_under_different_salts_are_different() -> None:
    rows = [at(0, [(A, 60)], cache_salt="x"), at(5, [(A, 60)], cache_salt="y"), at(10, [(A, 60)], cache_salt="x")]
    assert [window.working_set_tokens for window in sets_of(rows)] == [60] * 10


def test_nothing_measured_has_no_windows() -> None:
    assert sets_of([]) == ()
    assert sets_of([at(0, [(A, 60)], phase="warmup")]) == ()


SEGMENTS = st.sampled_from([(identity, 2 + 5 * (identity % 3)) for identity in range(5)])


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    return [
        sent(
            draw(st.lists(SEGMENTS, min_size=1, max_size=4)),
            draw(st.integers(0, 40)),
            session=draw(st.integers(0, 3)),
            turn=number,
            output_tokens=draw(st.integers(0, 4)),
            phase=draw(st.sampled_from(["warmup", "measure", "measure"])),
        )
        for number in range(draw(st.integers(1, 12)))
    ]


def prefixes(request: LoggedRequest, with_answer: bool) -> set[tuple[tuple[int, int], ...]]:
    """One for each token: the token with all before it."""
    items = [*request.prompt, *(request.output if with_answer else ())]
    tokens = [(identity, place) for identity, length in items for place in range(length)]
    return {tuple(tokens[: end + 1]) for end in range(len(tokens))}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=logs())
def test_each_window_has_the_most_prefixes_that_were_sent_and_come_again(rows: list[Row]) -> None:
    log = read_log(target_run(rows, {}, lexicon={"words": 2}))
    requests = log.requests
    measured = [
        request.sent_ns for request, phase in zip(requests, log.rows["phase"], strict=True) if phase == "measure"
    ]
    windows = working_sets(log)
    assert len(windows) == (WINDOWS if measured else 0)
    if not measured:
        return
    asked = [prefixes(request, with_answer=False) for request in requests]
    known = [prefixes(request, with_answer=True) for request in requests]
    left = [0] + [
        len(set().union(*known[: number + 1]) & set().union(*asked[number + 1 :])) for number in range(len(requests))
    ]
    span = max(measured) - min(measured) + 1
    of_window = [(request.sent_ns - min(measured)) * WINDOWS // span for request in requests]
    for window in windows:
        before = sum(number < window.key for number in of_window)
        there = [index for index, number in enumerate(of_window) if number == window.key]
        assert window.working_set_tokens == max([left[before], *(left[index + 1] for index in there)])
        assert window.touched_tokens == len(set().union(*(known[index] for index in there)))
