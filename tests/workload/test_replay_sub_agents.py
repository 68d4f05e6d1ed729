"""Sub-agents of a trace are sessions that their parent's session starts, and their requests are requests of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.traces.reading import read_trace
from harness.traces.reuse import reuse_of
from harness.workload.learning import learn
from harness.workload.prefixes import planned_reuse
from harness.workload.scenario import Replay, Scenario
from harness.workload.session import Session
from harness.workload.sharing import achieved_sharing
from harness.workload.workload import Workload
from tests.traces.written import agentic, call, sub_agent
from tests.workload.fake_target import FakeTarget
from tests.workload.samples import scripted_prompts

INNER = sub_agent(9, 6_000, [call(0, 192, [1, 21, 22], api_time=5.0)], "inner")
"""From second 3 to 9 of the one that starts it."""
TRACE: list[Any] = [
    call(0, 128, [1, 2], api_time=10.0),
    sub_agent(41, 30_000, [call(0, 64, [1], api_time=2.0), INNER, call(10, 256, [1, 11, 12, 13])], "first"),
    sub_agent(51, 40_000, [call(0, 100, [1], api_time=4.0)], "second"),
    sub_agent(12, None, [call(0, 64, [31], api_time=1.0), call(60, 128, [31, 32])], "behind"),
    call(54, 192, [1, 2, 3], api_time=1.0),
    call(60, 192, [1, 2, 3], think_time=5.0),
]
"""Blocks of 64 tokens; one session, which starts three sub-agents, one of which starts another."""
NUMBERS = {"s": 0, "first": 1, "second": 2, "behind": 3, "inner": 4}
"""In the order of their first requests: at 0, 11, 11, 12 and 14 s."""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return agentic(tmp_path / "t.json", TRACE)


def replay(path: Path, **keys: object) -> Replay:
    return Replay.model_validate({"name": "agents", "kind": "replay", "trace": str(path), **keys})


def first(scenario: Scenario) -> Session:
    return Workload(scenario, "n").session(0)


def shape(session: Session) -> list[Any]:
    """Number of a session and of its turns, then when each sub-agent starts and who waits for it, with its shape."""
    return [
        (session.number, len(session.turns)),
        *((each.after, each.before, shape(each.session)) for each in session.sub_agents),
    ]


def waits(session: Session) -> dict[int, list[tuple[float | None, float]]]:
    return {each.number: [(turn.due_s, turn.think_time_s) for turn in each.turns] for each in session.with_sub_agents()}


def test_a_session_has_the_sub_agents_that_it_starts(trace: Path) -> None:
    inner = (0, 1, [(4, 1)])
    assert shape(first(replay(trace))) == [
        (0, 3),
        (0, 1, [(1, 2), inner]),
        (0, 1, [(2, 1)]),
        (0, None, [(3, 2)]),
    ]


def test_no_two_sessions_have_one_number_and_none_is_left_out(trace: Path) -> None:
    workload = Workload(replay(trace), "n")
    laps = [list(workload.session(lap).with_sub_agents()) for lap in range(4)]
    assert [sorted(session.number for session in lap) for lap in laps] == [
        list(range(5 * lap, 5 * lap + 5)) for lap in range(4)
    ]
    assert [[len(session.turns) for session in lap] for lap in laps] == [[3, 2, 1, 1, 2]] * 4


def test_only_sessions_that_nobody_starts_are_dealt_out(tmp_path: Path) -> None:
    calls = [call(0, 64, [1]), sub_agent(5, 1_000, [call(0, 64, [2])], "a"), call(6, 64, [1])]
    workload = Workload(replay(agentic(tmp_path / "t.json", calls)), "n")
    assert [workload.session(place).number for place in range(3)] == [0, 2, 4]
    assert [workload.session(place).turns[0].due_s for place in range(3)] == [0.0, 9.0, 18.0]  # one mean gap after 6 s


@pytest.mark.parametrize(("keys", "speed"), [({}, 1.0), ({"times": "scaled", "speed": 4.0}, 4.0)])
def test_each_request_waits_as_long_after_what_it_waits_for_as_in_the_trace(
    trace: Path, keys: dict[str, object], speed: float
) -> None:
    found = waits(first(replay(trace, **keys)))
    by_hand: dict[str, list[tuple[float | None, float]]] = {
        # The second request follows the later of the two sub-agents that it waits for, which ended at 51 s.
        "s": [(0.0, 0.0), (None, 3.0), (None, 5.0)],
        # Its parent's answer was complete at 10 s; the second request follows the inner one, which ended at 20 s.
        "first": [(None, 1.0), (None, 1.0)],
        "second": [(None, 1.0)],
        # How long after the answer its second request came the trace does not tell: it is due at its own time.
        "behind": [(None, 2.0), (72.0, 0.0)],
        "inner": [(None, 1.0)],
    }
    assert found == {
        NUMBERS[name]: [(None if due is None else due / speed, think / speed) for due, think in turns]
        for name, turns in by_hand.items()
    }


def test_without_times_nobody_pauses(trace: Path) -> None:
    assert {wait for turns in waits(first(replay(trace, times="none"))).values() for wait in turns} == {(None, 0.0)}


def test_a_sub_agent_whose_start_is_not_told_by_an_answer_starts_at_its_own_time(tmp_path: Path) -> None:
    calls = [call(0, 64, [1]), sub_agent(9, 2_000, [call(0, 64, [2])], "a"), call(20, 64, [1])]
    made = first(replay(agentic(tmp_path / "t.json", calls)))
    assert waits(made) == {0: [(0.0, 0.0), (None, 11.0)], 1: [(7.0, 0.0)]}


def test_what_is_planned_counts_the_requests_of_sub_agents(trace: Path) -> None:
    workload = Workload(replay(trace), "n")
    # Prompt tokens of all nine requests; new is each block once: 1, 2, 3, 11, 12, 13, 21, 22, 31, 32, and the 36
    # tokens after the one full block of the second sub-agent's prompt.
    prompt_tokens = 128 + 192 + 192 + 64 + 256 + 100 + 64 + 128 + 192
    assert planned_reuse([workload.session(0)]) == (9, prompt_tokens, 10 * 64 + 36)
    assert achieved_sharing(workload, 2) == pytest.approx(1 - 676 / prompt_tokens)


def test_what_is_planned_is_what_the_analysis_of_the_trace_says(tmp_path: Path) -> None:
    whole = [each for each in TRACE if each.get("agent_id") != "second"]  # full blocks only
    path = agentic(tmp_path / "t.json", whole)
    found, _ = reuse_of(read_trace(path))
    planned = planned_reuse([first(replay(path))])
    assert (planned.requests, planned.prompt_tokens) == (found.requests, found.prompt_tokens)
    # Two prompts were sent before as they are: their last token is computed, and by the analysis its block with it.
    assert planned.prompt_tokens - planned.new_tokens == round(found.infinite.hit_rate * found.prompt_tokens) + 64 + 64


def test_the_bound_is_the_longest_request_of_any_agent(trace: Path, target: FakeTarget) -> None:
    scenario = replay(trace)
    template = learn(target.count_text, target.count_chat, target.chat_tokens, scenario).template
    prompts = [prompt for each in first(scenario).with_sub_agents() for prompt in scripted_prompts(each)]
    longest = max(template.tokens(prompt) for prompt in prompts)
    workload = Workload(scenario, "")
    assert (workload.longest_prompt_tokens(template), workload.longest_request_tokens(template)) == (
        longest,
        longest + 10,
    )
    assert longest > template.tokens(prompts[0])


def test_a_fault_hits_the_requests_of_sub_agents(trace: Path) -> None:
    made = first(replay(trace, fault={"kind": "request-id-first"}))
    sessions = list(made.with_sub_agents())
    assert [{each.fault(turn.index) for turn in each.turns} for each in sessions] == [{"request-id-first"}] * 5
    # No two requests begin alike any more, those of sub-agents neither.
    assert planned_reuse([made]).new_tokens == planned_reuse([made]).prompt_tokens


def test_a_worker_gets_the_same_sub_agents(trace: Path) -> None:
    scenario = replay(trace, times="scaled", speed=2.0).located(trace.parent, "here")
    sent = Workload(Scenario.from_json(scenario.to_json()), "n")
    assert [sent.session(lap) for lap in range(3)] == [Workload(scenario, "n").session(lap) for lap in range(3)]


def test_texts_are_shared_between_agents_within_a_lap_only(trace: Path) -> None:
    workload = Workload(replay(trace), "n")

    def head(session: Session) -> int:
        return session.turns[0].question.segments[0].content_id

    laps = [{each.number % 5: head(each) for each in workload.session(lap).with_sub_agents()} for lap in range(2)]
    assert len({laps[0][NUMBERS[name]] for name in ("s", "first", "second", "inner")}) == 1
    assert laps[0][NUMBERS["behind"]] != laps[0][0]
    assert not {*laps[0].values()} & {*laps[1].values()}


def test_sub_agents_of_another_model_share_nothing_with_their_parent(tmp_path: Path) -> None:
    small = {**call(0, 64, [1]), "model": "small"}
    calls = [call(0, 64, [1]), sub_agent(5, 1_000, [small]), call(6, 64, [1])]
    made = first(replay(agentic(tmp_path / "t.json", calls)))
    assert planned_reuse([made]).new_tokens == 2 * 64
    assert planned_reuse([made]).requests == 3
