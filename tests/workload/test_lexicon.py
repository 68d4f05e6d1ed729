from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer

from harness.engines.base import ChatMessages
from harness.errors import TargetError
from harness.workload.learning import learn
from harness.workload.lexicon import Lexicon
from harness.workload.session import Message, Segment
from harness.workload.text import Renderer
from harness.workload.words import CANDIDATES
from harness.workload.workload import Workload
from tests.workload.fake_target import FakeTarget, train
from tests.workload.samples import agent_loop, long_document, scripted_prompts


def is_one_token(target: FakeTarget, word: str) -> bool:
    return len(target.tokens(f" {word}")) == 1


def test_with_a_tokeniser_512_words_and_all_documents_are_learnt_exactly(target: FakeTarget) -> None:
    lexicon = learn(target.count_text, target.count_chat, target.chat_tokens, long_document())
    assert len(set(lexicon.words)) == 512
    assert all(is_one_token(target, word) for word in lexicon.words)
    assert lexicon.documents_real
    assert len(lexicon.documents) == 20
    assert lexicon.exact
    assert lexicon.notes == ()


def test_words_take_at_most_a_hundred_calls_even_with_many_long_ones() -> None:
    target = FakeTarget(train(word for index, word in enumerate(CANDIDATES) if index % 5))
    lexicon = learn(target.count_text, target.count_chat, target.chat_tokens, agent_loop())
    assert target.text_calls <= 100
    assert all(is_one_token(target, word) for word in lexicon.words)
    assert lexicon.exact


@pytest.mark.parametrize("every", [1, 5])
def test_without_a_tokeniser_at_most_forty_chats_are_counted(every: int) -> None:
    """All candidates are one token, or every fifth is not."""
    target = FakeTarget(train(word for index, word in enumerate(CANDIDATES) if every == 1 or index % every))
    lexicon = learn(target.no_count_text, target.count_chat, target.no_chat_tokens, agent_loop())
    assert target.text_calls == 0
    assert target.chat_calls <= 40
    assert len(lexicon.words) >= 16
    assert all(is_one_token(target, word) for word in lexicon.words)
    assert lexicon.exact


def test_without_a_tokeniser_prompts_are_as_long_as_planned(target: FakeTarget) -> None:
    scenario = agent_loop()
    lexicon = learn(target.no_count_text, target.count_chat, target.no_chat_tokens, scenario)
    renderer = Renderer(lexicon, scenario)
    for prompt in scripted_prompts(Workload(scenario, "run").session(3)):
        assert lexicon.template.tokens(prompt) == target.count_chat(renderer.chat(prompt))


def test_without_a_tokeniser_a_live_answer_is_counted_without_its_opener(target: FakeTarget) -> None:
    lexicon = learn(target.no_count_text, target.count_chat, target.no_chat_tokens, agent_loop())
    assert lexicon.template.opener_tokens == 1
    said = Message("assistant", (Segment("reply", 5, 3, text=" the of and"),))
    question = Message("user", (Segment("user", 6, 4),))
    messages = [question, said, question]
    chat = Renderer(lexicon, agent_loop()).chat(messages)
    assert lexicon.template.tokens(messages) == target.count_chat(chat)


def test_without_a_tokeniser_documents_are_words_and_a_note_says_so(target: FakeTarget) -> None:
    scenario = long_document()
    lexicon = learn(target.no_count_text, target.count_chat, target.no_chat_tokens, scenario)
    assert not lexicon.documents_real
    assert any("Documents are made of words" in note for note in lexicon.notes)
    prompt = scripted_prompts(Workload(scenario, "run").session(0))[0]
    assert lexicon.template.tokens(prompt) == target.count_chat(Renderer(lexicon, scenario).chat(prompt))


def test_a_template_that_was_not_seen_is_noted(target: FakeTarget) -> None:
    lexicon = learn(target.count_text, target.count_chat, target.no_chat_tokens, agent_loop())
    assert not lexicon.template.head_known
    assert any("template was counted, not seen" in note for note in lexicon.notes)


def test_a_tokeniser_without_english_words_is_refused_with_what_was_found() -> None:
    target = FakeTarget(train(["zzz"]))
    with pytest.raises(TargetError, match=r"Only 0 of \d+ common English words are one token each .* at least 16"):
        learn(target.count_text, target.count_chat, target.chat_tokens, agent_loop())


def test_a_chat_that_counts_otherwise_makes_lengths_approximate_with_both_numbers(target: FakeTarget) -> None:
    def count_chat(messages: ChatMessages) -> int:
        return target.count_chat(messages) + (3 if len(messages) > 4 else 0)

    lexicon = learn(target.count_text, count_chat, target.chat_tokens, agent_loop())
    assert not lexicon.exact
    predicted = 41 + 23 + 31 + 17 + 12 + 29 + (5 + 6 + 2 * 8 + 2 * 6 + 8) + 6
    assert f"a chat of {predicted} tokens counts {predicted + 3} on this target" in lexicon.notes[-1]


def test_a_document_that_counts_otherwise_in_a_chat_makes_lengths_approximate(target: FakeTarget) -> None:
    def count_chat(messages: ChatMessages) -> int:
        return target.count_chat(messages) - (1 if "\n\n" in messages[0]["content"] else 0)

    lexicon = learn(target.count_text, count_chat, target.chat_tokens, long_document())
    assert not lexicon.exact
    assert "a chat with a document of" in lexicon.notes[-1]


def test_text_that_does_not_add_up_is_replaced_by_words_with_the_reason(target: FakeTarget) -> None:
    def count_text(text: str) -> int | None:
        return (target.count_text(text) or 0) + ("\n\n" in text) * len(text) % 7

    lexicon = learn(count_text, target.count_chat, target.chat_tokens, long_document())
    assert not lexicon.documents_real
    assert "does not add up on this target: document 0 has" in lexicon.notes[-1]
    assert lexicon.exact


def test_a_lexicon_survives_the_way_to_a_worker_as_plain_values(target: FakeTarget) -> None:
    lexicon = learn(target.count_text, target.count_chat, target.chat_tokens, long_document())
    plain = json.loads(json.dumps(lexicon.to_json()))
    assert plain == lexicon.to_json()
    assert Lexicon.from_json(plain) == lexicon


def test_what_is_learnt_depends_on_the_target_and_the_scenario_alone(tokenizer: Tokenizer) -> None:
    learnt = [
        learn(target.count_text, target.count_chat, target.chat_tokens, long_document())
        for target in (FakeTarget(tokenizer), FakeTarget(tokenizer))
    ]
    assert learnt[0] == learnt[1]
