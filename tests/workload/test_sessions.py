"""The layout of each kind: what stands where, and which parts are shared."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.workload.scenario import Scenario
from harness.workload.session import Message
from harness.workload.workload import Workload
from tests.workload.samples import agent_loop, long_document, multi_round, scripted_prompts

EACH_KIND = pytest.mark.parametrize("scenario", [agent_loop(), long_document(), multi_round()], ids=lambda s: s.kind)


def layout(messages: Sequence[Message]) -> list[tuple[str, list[str]]]:
    return [(message.role, [segment.kind for segment in message.segments]) for message in messages]


def ids(messages: Sequence[Message]) -> list[int]:
    return [segment.content_id for message in messages for segment in message.segments]


def test_an_agents_transcript_grows_by_an_answer_and_an_observation() -> None:
    first, second, third = scripted_prompts(Workload(agent_loop(steps=3), "n").session(0))
    assert layout(first) == [("system", ["system", "tools"]), ("user", ["user"])]
    assert layout(second) == [*layout(first), ("assistant", ["reply"]), ("user", ["observation"])]
    assert third[: len(second)] == second
    assert layout(third[len(second) :]) == [("assistant", ["reply"]), ("user", ["observation"])]


def test_a_chat_grows_by_an_answer_and_a_question() -> None:
    first, second = scripted_prompts(Workload(multi_round(rounds=2), "n").session(0))
    assert layout(first) == [("system", ["system", "preamble"]), ("user", ["user"])]
    assert second[: len(first)] == first
    assert layout(second[len(first) :]) == [("assistant", ["reply"]), ("user", ["user"])]


def test_each_question_is_asked_of_the_bare_document() -> None:
    prompts = scripted_prompts(Workload(long_document(questions=3), "n").session(0))
    assert [layout(prompt) for prompt in prompts] == [[("system", ["system", "document"]), ("user", ["user"])]] * 3
    assert len({prompt[0] for prompt in prompts}) == 1
    assert len({prompt[1] for prompt in prompts}) == 3


def test_with_keep_history_a_question_follows_the_earlier_ones() -> None:
    first, second = scripted_prompts(Workload(long_document(questions=2, keep_history=True), "n").session(0))
    assert second[: len(first)] == first
    assert layout(second[len(first) :]) == [("assistant", ["reply"]), ("user", ["user"])]


def test_without_system_tokens_there_is_no_system_message() -> None:
    for scenario in (agent_loop(system_tokens=0, tools_tokens=0), multi_round(system_tokens=0, preamble_tokens=0)):
        assert layout(scripted_prompts(Workload(scenario, "n").session(0))[0]) == [("user", ["user"])]


def test_what_all_sessions_share_stands_first() -> None:
    agents = [Workload(agent_loop(), "n").session(number).opening for number in (0, 1)]
    assert agents[0] == agents[1]
    chats = [Workload(multi_round(), "n").session(number).opening[0].segments for number in (0, 1)]
    assert chats[0][0] == chats[1][0]
    assert chats[0][1].content_id != chats[1][1].content_id


@EACH_KIND
def test_nothing_else_is_shared_between_sessions(scenario: Scenario) -> None:
    workload = Workload(scenario, "n")
    own = [ids([turn.question, turn.reply]) for number in range(30) for turn in workload.session(number).turns]
    assert len({identity for pair in own for identity in pair}) == 2 * len(own)


def test_sessions_on_one_document_share_it() -> None:
    workload = Workload(long_document(documents=3), "n")
    openings = {workload.session(number).opening for number in range(40)}
    assert len(openings) == 3
    assert {opening[0].segments[1].document for opening in openings} == {0, 1, 2}


def test_documents_of_words_have_no_document_number() -> None:
    session = Workload(long_document(corpus="words"), "n").session(0)
    assert session.opening[0].segments[1].document is None


@EACH_KIND
def test_replies_are_as_long_as_the_answers_that_are_asked_for(scenario: Scenario) -> None:
    for number in range(10):
        for turn in Workload(scenario, "n").session(number).turns:
            assert turn.reply.tokens == turn.output_tokens


def test_the_first_turn_follows_at_once_and_the_others_after_a_pause() -> None:
    pauses_s = [turn.think_time_s for turn in Workload(multi_round(rounds=4), "n").session(0).turns]
    assert pauses_s[0] == 0.0
    assert all(0.1 <= pause <= 0.2 for pause in pauses_s[1:])
    assert len(set(pauses_s)) == 4
