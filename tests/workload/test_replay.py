"""A replay asks what its trace asked: the same lengths and sessions, sharing where the trace shares, nowhere else."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.traces.reading import read_trace
from harness.traces.request import Skipped, Trace, TraceRequest
from harness.traces.reuse import reuse_of
from harness.workload.learning import learn
from harness.workload.prefixes import planned_reuse
from harness.workload.scenario import Replay, Scenario, load_scenario
from harness.workload.session import Session
from harness.workload.sharing import achieved_sharing
from harness.workload.text import Renderer
from harness.workload.workload import Workload
from tests.traces.written import MOONCAKE, agentic, call, chat, lines
from tests.workload.fake_target import FakeTarget
from tests.workload.samples import scripted_prompts

SHIPPED = Path(__file__).parents[2] / "scenarios"
ROWS: list[dict[str, Any]] = [
    {"timestamp": 0, "input_length": 150, "output_length": 5, "hash_ids": [7, 8, 9]},
    {"timestamp": 500, "input_length": 128, "output_length": 6, "hash_ids": [7, 8]},
    {"timestamp": 1500, "input_length": 90, "output_length": 9, "hash_ids": [7, 3]},
    {"timestamp": 2000, "input_length": 90, "output_length": 3, "hash_ids": [4, 3]},
]
"""Blocks of 64 tokens."""


def replay(path: Path, **keys: object) -> Replay:
    return Replay.model_validate({"name": "small", "kind": "replay", "trace": str(path), **keys})


def small(folder: Path, **keys: object) -> Replay:
    return replay(lines(folder / "t.jsonl", ROWS), block_tokens=64, **keys)


def sessions(scenario: Scenario, count: int, nonce: str = "n") -> list[Session]:
    workload = Workload(scenario, nonce)
    return [workload.session(number) for number in range(count)]


def content_ids(made: list[Session]) -> set[int]:
    return {segment.content_id for one in made for turn in one.turns for segment in turn.question.segments}


def test_lengths_are_those_of_the_trace(tmp_path: Path) -> None:
    made = sessions(small(tmp_path), 4)
    assert [[turn.question.tokens for turn in session.turns] for session in made] == [[150], [128], [90], [90]]
    assert [[turn.output_tokens for turn in session.turns] for session in made] == [[5], [6], [9], [3]]
    assert [segment.tokens for segment in made[0].turns[0].question.segments] == [64, 64, 22]


def test_requests_share_as_far_as_their_ids_are_equal(tmp_path: Path) -> None:
    made = sessions(small(tmp_path), 4)
    # 150 are new, then none of 128, then 90 - 64, then 90: an id that follows another one is no shared prefix.
    assert planned_reuse(made) == (4, 458, 150 + 0 + 26 + 90)
    assert achieved_sharing(Workload(small(tmp_path), "n"), 4) == pytest.approx(192 / 458)


def test_the_text_of_each_prompt_has_its_length_and_shares_what_the_ids_say(tmp_path: Path, target: FakeTarget) -> None:
    scenario = small(tmp_path)
    lexicon = learn(target.count_text, target.count_chat, target.chat_tokens, scenario)
    assert lexicon.exact
    assert set(lexicon.template.head) == {"user"}
    renderer = Renderer(lexicon, scenario)
    prompts = [scripted_prompts(session)[0] for session in sessions(scenario, 4)]
    around = lexicon.template.tokens(prompts[0]) - 150
    chats = [renderer.chat(prompt) for prompt in prompts]
    assert [[message["role"] for message in one] for one in chats] == [["user"]] * 4
    assert [target.count_chat(one) for one in chats] == [150 + around, 128 + around, 90 + around, 90 + around]
    words = [one[0]["content"].split() for one in chats]
    assert words[1][:129] == words[0][:129]  # the opener, and two blocks
    assert words[2][:65] == words[0][:65]
    assert words[2][65] != words[0][65]
    assert words[3][1] != words[2][1]


def test_a_block_is_another_text_in_another_run_trace_or_lap(tmp_path: Path) -> None:
    scenario = small(tmp_path)
    one = sessions(scenario, 4)
    assert one == sessions(scenario, 4)
    again = [Workload(scenario, "n").session(number) for number in range(4, 8)]
    longer = lines(tmp_path / "longer.jsonl", [*ROWS, ROWS[-1]])
    other = replay(longer, block_tokens=64)
    for unlike in (sessions(scenario, 4, nonce="m"), again, sessions(other, 4)):
        assert not content_ids(one) & content_ids(unlike)
        assert [len(session.turns) for session in unlike] == [1] * 4
        assert planned_reuse(unlike) == planned_reuse(one)


def test_a_worker_gets_the_same_sessions(tmp_path: Path) -> None:
    scenario = small(tmp_path, times="scaled", speed=2.0).located(tmp_path, "s.yaml")
    assert sessions(Scenario.from_json(scenario.to_json()), 9) == sessions(scenario, 9)


def test_requests_of_a_session_are_its_turns_in_order(tmp_path: Path) -> None:
    rows = [{**row, "session_id": key} for row, key in zip(ROWS, ["a", "b", "a", "a"], strict=True)]
    made = sessions(replay(lines(tmp_path / "t.jsonl", rows), block_tokens=64), 2)
    assert [[turn.question.tokens for turn in session.turns] for session in made] == [[150, 90, 90], [128]]
    assert [turn.index for turn in made[0].turns] == [0, 1, 2]
    # A prompt is the trace's own, whatever the session said before.
    assert [len(prompt) for prompt in scripted_prompts(made[0])] == [1, 1, 1]


def test_a_conversation_of_messages_shares_its_beginning(tmp_path: Path) -> None:
    first = ("user", "x" * 400)
    rows = [chat(first, session_id="s"), chat(first, ("assistant", "y" * 40), ("user", "z" * 80), session_id="s")]
    scenario = replay(lines(tmp_path / "m.jsonl", rows), times="none", output_tokens=7)
    (made,) = sessions(scenario, 1)
    assert [turn.question.tokens for turn in made.turns] == [3 + 105, 3 + 105 + 15 + 25]
    assert [turn.output_tokens for turn in made.turns] == [7, 7]
    # 3 + 3 + 100 + 2 tokens are the first prompt: 6 full blocks of 16, and 12 of the next that end otherwise.
    assert planned_reuse([made]).new_tokens == 108 + 148 - 96


@pytest.mark.parametrize(
    ("keys", "due_s"),
    [
        ({}, [0.0, 0.5, 1.5, 2.0]),
        ({"times": "scaled", "speed": 4.0}, [0.0, 0.125, 0.375, 0.5]),
        ({"times": "none"}, [None] * 4),
    ],
)
def test_sessions_start_when_the_trace_says(tmp_path: Path, keys: dict[str, object], due_s: list[float | None]) -> None:
    assert [session.starts_s for session in sessions(small(tmp_path, **keys), 4)] == due_s


def test_times_count_from_the_first_request_and_go_on_in_the_next_lap(tmp_path: Path) -> None:
    late = [{**row, "timestamp": row["timestamp"] + 60_000} for row in ROWS]
    made = sessions(replay(lines(tmp_path / "t.jsonl", late), block_tokens=64), 6)
    # The second lap begins after the mean gap of the first, 2 s / 3.
    assert [session.starts_s for session in made] == pytest.approx([0, 0.5, 1.5, 2, 2 + 2 / 3, 2.5 + 2 / 3])


def test_a_later_turn_waits_as_the_trace_says(tmp_path: Path) -> None:
    calls = [call(0, 64, [1], think_time=5.0), call(9, 128, [1, 2], think_time=3.0), call(20, 128, [1, 2])]
    (made,) = sessions(replay(agentic(tmp_path / "a.json", calls), times="scaled", speed=2.0), 1)
    # How long after the answer is known of the second; of the third only when it was sent.
    assert [(turn.due_s, turn.think_time_s) for turn in made.turns] == [(0.0, 0.0), (None, 1.5), (10.0, 0.0)]
    (at_once,) = sessions(replay(agentic(tmp_path / "a.json", calls), times="none"), 1)
    assert [(turn.due_s, turn.think_time_s) for turn in at_once.turns] == [(None, 0.0)] * 3


def test_an_answer_of_no_tokens_is_asked_for_as_one(tmp_path: Path) -> None:
    (made,) = sessions(replay(agentic(tmp_path / "a.json", [{**call(0, 64, [1]), "out": 0}])), 1)
    assert made.turns[0].output_tokens == 1


def test_the_bound_is_the_longest_prompt_and_the_longest_request(tmp_path: Path, target: FakeTarget) -> None:
    rows = [ROWS[0], {**ROWS[1], "output_length": 60}]
    scenario = replay(lines(tmp_path / "t.jsonl", rows), block_tokens=64)
    template = learn(target.count_text, target.count_chat, target.chat_tokens, scenario).template
    around = template.tokens(scripted_prompts(sessions(scenario, 1)[0])[0]) - 150
    workload = Workload(scenario, "")
    assert workload.longest_prompt_tokens(template) == 150 + around
    assert workload.longest_request_tokens(template) == 128 + 60 + around
    unknown = replay(
        lines(tmp_path / "u.jsonl", [{**ROWS[0], "output_length": None}]),
        block_tokens=64,
        output_tokens={"uniform": [1, 40]},
    )
    assert Workload(unknown, "").longest_request_tokens(template) == 150 + 40 + around


def test_a_fault_hits_the_requests_of_a_replay(tmp_path: Path) -> None:
    faulty = small(tmp_path, fault={"kind": "timestamp-first"})
    made = sessions(faulty, 4)
    assert [session.fault(0) for session in made] == ["timestamp-first"] * 4
    assert [sum(message.tokens for message in session.prompt(0, [])) for session in made] == [150, 128, 90, 90]
    assert planned_reuse(made).new_tokens == 458 - 3 * 2  # the date alone is the same


def test_the_shipped_trace_is_shared_as_its_analysis_says() -> None:
    scenario = load_scenario("replay", SHIPPED)
    made = sessions(scenario, 12)
    requests = [
        TraceRequest(None, [(segment.content_id, segment.tokens) for segment in session.turns[0].question.segments], 1)
        for session in made
    ]
    played, _ = reuse_of(Trace("played", "", 512, requests, Skipped(0, None)))
    found, _ = reuse_of(read_trace(SHIPPED / "replay.jsonl"))
    assert played.infinite == found.infinite
    assert played.capacities == found.capacities
    assert [session.starts_s for session in made][-1] == 15.8
    for before, after in pairwise(made):
        assert before.starts_s is not None
        assert after.starts_s is not None
        assert before.starts_s < after.starts_s


def test_mooncakes_usual_blocks_are_taken_where_none_are_named(tmp_path: Path) -> None:
    made = sessions(replay(lines(tmp_path / "t.jsonl", MOONCAKE)), 3)
    assert planned_reuse(made) == (3, 2724, 1100 + 0 + 88)
