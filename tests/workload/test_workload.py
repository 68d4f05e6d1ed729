from __future__ import annotations

from collections import Counter

import pytest

from harness.workload.learning import learn
from harness.workload.scenario import Scenario
from harness.workload.session import Session
from harness.workload.workload import Workload
from tests.workload.fake_target import FakeTarget
from tests.workload.samples import agent_loop, long_document, multi_round, scripted_prompts

EACH_KIND = pytest.mark.parametrize("scenario", [agent_loop(), long_document(), multi_round()], ids=lambda s: s.kind)


def lengths(session: Session) -> object:
    """All of a session but its content ids."""
    return (
        session.number,
        [[(segment.kind, segment.tokens) for segment in message.segments] for message in session.opening],
        [(turn.question.tokens, turn.output_tokens, turn.reply.tokens, turn.think_time_s) for turn in session.turns],
    )


def content_ids(session: Session) -> set[int]:
    messages = [*session.opening, *(message for turn in session.turns for message in (turn.question, turn.reply))]
    return {segment.content_id for message in messages for segment in message.segments}


@EACH_KIND
def test_a_session_is_the_same_in_whatever_order_sessions_are_made(scenario: Scenario) -> None:
    workload = Workload(scenario, "n")
    forward = [workload.session(number) for number in range(10)]
    backward = [Workload(scenario, "n").session(number) for number in reversed(range(10))]
    assert forward == backward[::-1]


@EACH_KIND
def test_another_nonce_changes_every_text_and_no_length(scenario: Scenario) -> None:
    for number in range(10):
        one, other = Workload(scenario, "a").session(number), Workload(scenario, "b").session(number)
        assert lengths(one) == lengths(other)
        assert not content_ids(one) & content_ids(other)


@EACH_KIND
def test_another_seed_changes_lengths_and_texts(scenario: Scenario) -> None:
    other = scenario.model_copy(update={"seed": 1})
    assert lengths(Workload(scenario, "").session(0)) != lengths(Workload(other, "").session(0))
    assert not content_ids(Workload(scenario, "").session(0)) & content_ids(Workload(other, "").session(0))


def test_skewed_popularity_changes_the_choice_of_documents_and_nothing_else() -> None:
    even, skewed = Workload(long_document(), "n"), Workload(long_document(popularity={"zipf": 2.0}), "n")
    chosen: Counter[int | None] = Counter()
    for number in range(100):
        assert even.session(number).turns == skewed.session(number).turns
        chosen[skewed.session(number).opening[0].segments[1].document] += 1
    assert even.documents_needed == skewed.documents_needed
    assert chosen[0] > 45  # 63 are expected: 1 / (1 + 1/4 + 1/9 + ... + 1/400)
    assert chosen[0] > chosen[1] > chosen[5]


def test_another_number_of_questions_changes_neither_documents_nor_lengths() -> None:
    some, three = Workload(long_document(), "n"), Workload(long_document(questions=3), "n")
    for number in range(30):
        one, other = some.session(number), three.session(number)
        assert one.opening == other.opening
        assert all(turn == same for turn, same in zip(one.turns, other.turns, strict=False))


def test_uniform_popularity_chooses_each_document_about_equally_often() -> None:
    workload = Workload(long_document(documents=4), "n")
    chosen = Counter(workload.session(number).opening[0].segments[1].document for number in range(400))
    assert set(chosen) == {0, 1, 2, 3}
    assert all(70 <= times <= 130 for times in chosen.values())


def test_a_longer_session_begins_like_a_shorter_one() -> None:
    short, long = Workload(agent_loop(steps=2), "n").session(7), Workload(agent_loop(steps=6), "n").session(7)
    assert long.turns[:2] == short.turns


@EACH_KIND
def test_no_prompt_is_longer_than_the_bound_which_is_reached(scenario: Scenario, target: FakeTarget) -> None:
    template = learn(target.count_text, target.count_chat, target.chat_tokens, scenario).template
    workload = Workload(scenario, "n")
    longest = longest_request = 0
    for number in range(1000):
        session = workload.session(number)
        last = template.tokens(scripted_prompts(session)[-1])
        longest = max(longest, last)
        longest_request = max(longest_request, last + session.turns[-1].output_tokens)
    assert longest <= workload.longest_prompt_tokens(template)
    assert longest_request <= workload.longest_request_tokens(template)

    narrow = {key: {"uniform": [1, 2]} for key in _distributions(scenario)}
    workload = Workload(type(scenario).model_validate(scenario.model_dump() | narrow), "n")
    prompts = [scripted_prompts(workload.session(number))[-1] for number in range(1000)]
    assert max(template.tokens(prompt) for prompt in prompts) == workload.longest_prompt_tokens(template)


def _distributions(scenario: Scenario) -> list[str]:
    """Keys whose lengths are drawn for each session, without the document's, which is drawn once."""
    return [
        key
        for key, value in scenario.model_dump().items()
        if isinstance(value, dict) and key not in ("document_tokens", "think_time_s")
    ]


def test_the_bound_of_fixed_lengths_is_the_length_of_the_last_prompt(target: FakeTarget) -> None:
    scenario = agent_loop(task_tokens=50, steps=3, observation_tokens=7, output_tokens=5)
    template = learn(target.count_text, target.count_chat, target.chat_tokens, scenario).template
    around = (4 + 1 + 1) + 6 + 1 + 2 * (8 + 1 + 6 + 1) + 8  # pieces of this template, and an opener for each message
    words = 12 + 20 + 50 + 2 * (5 + 7)
    workload = Workload(scenario, "n")
    assert template.tokens(scripted_prompts(workload.session(0))[2]) == around + words
    assert workload.longest_prompt_tokens(template) == around + words
    assert workload.longest_request_tokens(template) == around + words + 5


def test_the_longest_document_counts_in_the_bound(target: FakeTarget) -> None:
    scenario = long_document(documents=50)
    workload = Workload(scenario, "n")
    template = learn(target.count_text, target.count_chat, target.chat_tokens, scenario).template
    system = 4 + 1 + 1 + 12 + max(workload.documents_needed)
    assert workload.longest_prompt_tokens(template) == system + 6 + 1 + 9 + 8


def test_documents_needed_are_the_lengths_that_sessions_use() -> None:
    workload = Workload(long_document(), "n")
    assert len(workload.documents_needed) == 20
    assert all(100 <= tokens <= 300 for tokens in workload.documents_needed)
    for number in range(30):
        document = workload.session(number).opening[0].segments[1]
        assert document.document is not None
        assert document.tokens == workload.documents_needed[document.document]


def test_no_documents_are_needed_of_words_or_where_there_are_none() -> None:
    assert Workload(long_document(corpus="words"), "").documents_needed == ()
    assert Workload(agent_loop(), "").documents_needed == ()


def test_roles_are_those_that_prompts_really_hold() -> None:
    assert Workload(agent_loop(), "").roles == {"system", "user", "assistant"}
    assert Workload(long_document(), "").roles == {"system", "user"}
    assert Workload(multi_round(system_tokens=0, preamble_tokens=0), "").roles == {"user", "assistant"}
    assert Workload(multi_round(rounds=1), "").roles == {"system", "user"}


def documents(scenario: Scenario, sessions: int) -> list[int | None]:
    workload = Workload(scenario, "n")
    return [workload.session(number).opening[0].segments[1].document for number in range(sessions)]


def test_interleaved_documents_come_back_only_after_all_the_others() -> None:
    assert documents(long_document(documents=5, order="interleave"), 12) == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]


def test_tiled_documents_are_asked_about_by_sessions_in_a_row() -> None:
    assert documents(long_document(documents=3, order="tile", repeats=2), 9) == [0, 0, 1, 1, 2, 2, 0, 0, 1]


def test_order_changes_the_choice_of_documents_and_nothing_else() -> None:
    drawn, in_turn = Workload(long_document(), "n"), Workload(long_document(order="interleave"), "n")
    assert drawn.documents_needed == in_turn.documents_needed
    for number in range(30):
        assert drawn.session(number).turns == in_turn.session(number).turns
