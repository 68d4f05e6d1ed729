"""What an mlx-lm answer is made of."""

from __future__ import annotations

import pytest

from harness.sim.manners.mlx_lm_bodies import milestones
from harness.sim.manners.mlx_lm_request import BadRequest, Unserved, checked, set_prompt
from harness.sim.manners.mlx_lm_stop import spoken
from harness.sim.vocabulary import Vocabulary
from tests.contract.subject import Prompt


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary()


def test_a_prompt_is_computed_up_to_the_end_of_the_system_message_then_all_but_its_last_token() -> None:
    """The first two as recorded: `: keepalive 1508/1527` and so on, of what is not cached."""
    assert [done - 7 for done in milestones(7, 1515, 1534)] == [1508, 1526, 1527]
    assert [done - 7 for done in milestones(7, 5014, 5028)] == [2048, 4096, 5007, 5020, 5021]
    assert list(milestones(99, 20, 100)) == [100]
    assert list(milestones(0, 0, 7)) == [6, 7]


def test_the_system_message_ends_where_the_users_text_begins(vocabulary: Vocabulary) -> None:
    prompt = Prompt(("# some rules", "# what then"))
    asked = checked({"messages": prompt.messages}, chat=True)
    set_prompt(asked, vocabulary)
    assert asked.prompt_ids == prompt.ids
    assert vocabulary.decode(asked.prompt_ids[: asked.system_tokens]).endswith(
        "# some rules<|im_end|>\n<|im_start|>user\n"
    )


@pytest.mark.parametrize("roles", [("user",), ("user", "assistant", "user"), ("system", "user", "assistant")])
def test_only_a_chat_that_ends_with_the_user_has_a_system_part(vocabulary: Vocabulary, roles: tuple[str, ...]) -> None:
    asked = checked({"messages": [{"role": role, "content": "# a word"} for role in roles]}, chat=True)
    set_prompt(asked, vocabulary)
    assert asked.system_tokens == 0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"max_tokens": "8"}, "max_tokens must be of type int"),
        ({"max_completion_tokens": 0}, "max_tokens must be at least 1"),
        ({"temperature": "hot"}, "temperature must be of type ('float', 'int')"),
        ({"top_p": 1.5}, "top_p must be at most 1"),
        ({"model": 5}, "requested_model must be of type str"),
        ({"logit_bias": {"a": 1}}, "logit_bias must be a dict of int to float"),
        ({"stream": "yes", "max_tokens": 0}, "stream must be of type bool"),
        ({}, "Request did not contain messages"),
    ],
)
def test_a_bad_body_is_refused_in_the_real_words(body: dict[str, object], words: str) -> None:
    with pytest.raises(BadRequest) as caught:
        checked(body, chat=True)
    assert str(caught.value) == words


def test_token_ids_are_no_prompt(vocabulary: Vocabulary) -> None:
    with pytest.raises(Unserved, match="text input must be of type"):
        set_prompt(checked({"prompt": [1, 2]}, chat=False), vocabulary)


STOPS = [("b c", [2, 3]), ("ee", [9])]


def test_an_answer_ends_where_its_tokens_are_those_of_a_stop_word() -> None:
    said = spoken([(1, "a "), (2, "b "), (3, "c"), (4, "d")], STOPS)
    assert said.stopped
    assert said.pieces == ("a ", "", "")  # what may have become a stop word is not said any more


def test_a_stop_word_of_other_tokens_is_taken_out() -> None:
    said = spoken([(1, "fee"), (5, "b"), (6, " "), (7, "cd")], STOPS)
    assert not said.stopped
    assert said.pieces == ("f", "", "", "d")


def test_what_is_held_back_is_said_with_the_last_token() -> None:
    assert spoken([(1, "ab"), (5, "e")], STOPS).pieces == ("a", "be")
