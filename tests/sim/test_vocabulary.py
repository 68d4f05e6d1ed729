"""Text to tokens and back, as the tokenizers library has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sim.vocabulary import Kept, render, tiny_vocabulary
from harness.workload.words import CANDIDATES
from tests.contract.subject import Prompt, fresh_prompt, token_ids

PIECES = ["time", " time", " the", "  ", " ", "\n", "#", "'s", " zebra", "é", "世", "<|im_end|>", "<|im_start|>", "1"]


@pytest.mark.parametrize(
    "text", ["", " time", " time time#", " time  time", " time the of", "a  ", "# the\n\nof the", " "]
)
def test_a_text_has_the_tokens_that_the_library_makes(text: str) -> None:
    assert tiny_vocabulary().encode(text) == token_ids(text)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5)).map("".join))
def test_any_text_has_them_and_comes_back(text: str) -> None:
    ids = tiny_vocabulary().encode(text)
    assert ids == token_ids(text)
    assert tiny_vocabulary().decode(ids) == text


def test_each_word_with_its_space_is_one_token_and_all_of_them_make_answers() -> None:
    ids = [tiny_vocabulary().encode(f" {word}") for word in CANDIDATES]
    assert {len(one) for one in ids} == {1}
    assert sorted(one[0] for one in ids) == list(tiny_vocabulary().words)
    assert tiny_vocabulary().in_json[tiny_vocabulary().encode(" time")[0]] == b" time"


def test_what_stands_in_json_is_escaped() -> None:
    (quote,) = tiny_vocabulary().encode('"')
    assert tiny_vocabulary().in_json[quote] == b'\\"'


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=4).map("".join), min_size=1, max_size=4))
def test_a_chat_is_the_template_filled_in(contents: list[str]) -> None:
    """With whatever stands in its messages, at their ends too."""
    messages = Prompt(tuple(contents)).messages
    assert tiny_vocabulary().encode_chat(messages) == token_ids(render(messages)) == Prompt(tuple(contents)).ids


def test_a_chat_may_end_without_asking_for_an_answer() -> None:
    messages = fresh_prompt(20).messages
    without = tiny_vocabulary().encode_chat(messages, generation_prompt=False)
    assert tiny_vocabulary().decode(without) == render(messages, generation_prompt=False)
    assert tiny_vocabulary().encode_chat(messages)[: len(without)] == without


def test_a_message_that_comes_again_has_the_same_tokens() -> None:
    messages = fresh_prompt(50).messages
    first = tiny_vocabulary().encode_chat(messages)
    first.append(-1)  # what a caller does with its list is its own affair
    assert tiny_vocabulary().encode_chat(messages) == first[:-1]


def test_how_long_a_system_message_is() -> None:
    messages = [{"role": "system", "content": "# the of"}, {"role": "user", "content": "# and"}]
    assert tiny_vocabulary().system_tokens(messages) == len(token_ids("<|im_start|>system\n# the of<|im_end|>\n"))
    assert tiny_vocabulary().system_tokens(messages[1:]) == 0
    assert tiny_vocabulary().system_tokens([]) == 0


def test_special_tokens_can_be_left_out() -> None:
    ids = tiny_vocabulary().encode("<|im_start|>user\n time<|im_end|>")
    assert tiny_vocabulary().decode(ids, special=False) == "user\n time"


def test_numbers_beyond_the_vocabulary_are_no_tokens() -> None:
    assert tiny_vocabulary().has([0, len(tiny_vocabulary()) - 1])
    assert not tiny_vocabulary().has([0, len(tiny_vocabulary())])
    assert not tiny_vocabulary().has([-1])


def test_the_texts_used_last_are_kept() -> None:
    kept = Kept(most_tokens=5)
    kept.put("a", [1, 2])
    kept.put("b", [3, 4])
    assert kept.get("a") == [1, 2]
    kept.put("c", [5, 6])
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == ([1, 2], None, [5, 6])
    kept.put("long", [0] * 6)
    assert (kept.get("a"), kept.get("long")) == (None, None)
