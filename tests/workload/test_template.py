"""Pieces of a chat template: seen in renders where token ids can be had, else counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tokenizers import Tokenizer

from harness.engines.base import ChatMessages
from harness.workload.content import content_id
from harness.workload.session import Message, Segment
from harness.workload.template import Template, measure_template
from harness.workload.words import CANDIDATES
from tests.workload.fake_target import FakeTarget, chatml
from tests.workload.samples import pairs

ALL_ROLES = ("system", "user", "assistant")


def message(role: str, tokens: int, text: str | None = None) -> Message:
    return Message(role, (Segment(role, content_id("0/", role, tokens), tokens, text=text),))


def with_default_system(messages: ChatMessages) -> str:
    """A template that adds a system prompt where there is none, and writes differently to each side of an answer."""
    if messages[0]["role"] != "system":
        messages = [{"role": "system", "content": "the good of all"}, *messages]
    start = {"system": "[SYS] ", "user": "[INST] ", "assistant": "[ANSWER] "}
    return "<s>" + "".join(start[m["role"]] + m["content"] + " [/END]" for m in messages) + "[ANSWER] "


def system_last(messages: ChatMessages) -> str:
    """A template that moves the system prompt into the last message of the user."""
    system = [m for m in messages if m["role"] == "system"]
    others = [m for m in messages if m["role"] != "system"]
    return chatml([*others[:-1], *system, others[-1]])


def measured(target: FakeTarget, roles: Sequence[str] = ALL_ROLES, ids: bool = True) -> Template:
    chat_tokens = target.chat_tokens if ids else target.no_chat_tokens
    return measure_template(CANDIDATES[:100], roles, 1, target.count_chat, chat_tokens)


def test_pieces_are_those_of_the_template(target: FakeTarget) -> None:
    def tokens(text: str) -> int:
        return len(target.tokens(text))

    template = measured(target)
    assert template.head == {
        "user": tokens("<|im_start|>user\n"),
        "system": tokens("<|im_start|>system\n"),
    }
    assert template.between == {
        "system>user": tokens("<|im_end|>\n<|im_start|>user\n"),
        "user>assistant": tokens("<|im_end|>\n<|im_start|>assistant\n"),
        "assistant>user": tokens("<|im_end|>\n<|im_start|>user\n"),
    }
    assert template.tail == dict.fromkeys(("user", "system"), tokens("<|im_end|>\n<|im_start|>assistant\n"))
    assert template.opener_tokens == 1
    assert template.head_known
    assert template.reply_after_tail


@pytest.mark.parametrize("ids", [True, False], ids=["seen", "counted"])
@pytest.mark.parametrize("form", [chatml, with_default_system, system_last])
def test_path_adds_up_to_what_the_tokeniser_counts(
    tokenizer: Tokenizer, form: Callable[[ChatMessages], str], ids: bool
) -> None:
    target = FakeTarget(tokenizer, form)
    template = measured(target, ids=ids)
    system, question, answer = message("system", 20), message("user", 9), message("assistant", 4)
    rounds = [question, answer, message("user", 6), message("assistant", 5), message("user", 3)]
    for messages in ([question], rounds, [system, question], [system, *rounds]):
        words = [" ".join([CANDIDATES[index]] * m.tokens) for index, m in enumerate(messages)]
        chat = [{"role": m.role, "content": f"# {text}"} for m, text in zip(messages, words, strict=True)]
        assert template.tokens(messages) == target.count_chat(chat)


def test_a_default_system_prompt_is_part_of_the_head(tokenizer: Tokenizer) -> None:
    template = measured(FakeTarget(tokenizer, with_default_system))
    assert template.head["user"] > template.head["system"]


def test_where_the_template_moves_messages_its_pieces_are_counted(tokenizer: Tokenizer) -> None:
    assert not measured(FakeTarget(tokenizer, system_last)).head_known


def test_what_cannot_be_placed_by_counts_stands_as_late_as_it_can(target: FakeTarget) -> None:
    seen, counted = measured(target), measured(target, ids=False)
    assert not counted.head_known
    assert counted.head == {"user": 0, "system": 0}
    assert counted.tail["user"] == seen.head["user"] + seen.tail["user"]
    assert counted.tail["system"] == seen.head["system"] + seen.between["system>user"] + seen.tail["system"]
    assert counted.between == {
        "system>user": 0,
        "user>assistant": 0,
        "assistant>user": seen.between["user>assistant"] + seen.between["assistant>user"],
    }


def test_only_roles_in_use_are_tried(target: FakeTarget) -> None:
    tried: set[str] = set()

    def no_answers(messages: ChatMessages) -> Sequence[int] | None:
        tried.update(m["role"] for m in messages)
        return target.chat_tokens(messages)

    template = measure_template(CANDIDATES[:100], ("user",), 1, target.count_chat, no_answers)
    assert tried == {"user"}
    assert template.between == {}


SHARED = 1
"""Tokens of a prompt before the role of its first message: <|im_start|>."""


def test_prompts_of_different_first_speakers_share_what_stands_before_the_role(target: FakeTarget) -> None:
    template = measured(target)
    by_system, by_user = ([message("system", 30), message("user", 9)], [message("user", 9)])
    assert template.path(by_system)[0] == template.path(by_user)[0]
    ids = [target.chat_tokens([{"role": role, "content": "#"}]) for role in ("system", "user")]
    assert ids[0] is not None
    assert ids[1] is not None
    alike = [one == other for one, other in zip(*ids, strict=False)]
    assert alike.index(False) == template.head_shared == SHARED


def test_path_names_template_openers_and_segments_in_the_order_of_the_prompt(target: FakeTarget) -> None:
    template = measured(target)
    system, user = message("system", 30), message("user", 9)
    assert pairs(template.path([system, user])) == [
        (content_id("template", "head", SHARED), SHARED),
        (content_id("template", "head system", 5 - SHARED), 5 - SHARED),
        (content_id("template", "opener", 1), 1),
        (content_id("0/", "system", 30), 30),
        (content_id("template", "system>user", 6), 6),
        (content_id("template", "opener", 1), 1),
        (content_id("0/", "user", 9), 9),
        (content_id("template", "user>assistant", 8), 8),
    ]


def test_path_names_the_level_of_each_piece(target: FakeTarget) -> None:
    tenant = Segment("shared", 7, 30, tree_level="tenant")
    messages = [Message("system", (tenant, *message("system", 12).segments)), message("user", 9)]
    head, pair, tail = ["chat template"] * 3, ["chat template"] * 2, ["chat template"]
    assert [piece.level for piece in measured(target).path(messages)] == [
        *head, "tenant", "system prompt", *pair, "user message", *tail,
    ]  # fmt: skip


def test_the_next_prompt_begins_with_all_of_this_one(target: FakeTarget) -> None:
    template = measured(target)
    first = [message("system", 30), message("user", 9)]
    second = [*first, message("assistant", 5, text="what it said"), message("user", 7)]
    assert template.path(second)[: len(template.path(first))] == template.path(first)


def test_a_live_answer_has_no_opener(target: FakeTarget) -> None:
    template = measured(target)
    text = " the good people"
    messages = [message("user", 9), message("assistant", 3, text=text), message("user", 7)]
    chat = [
        {"role": "user", "content": "#" + " the" * 9},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "#" + " of" * 7},
    ]
    assert template.tokens(messages) == target.count_chat(chat)


def test_pieces_without_tokens_are_left_out_of_the_path(target: FakeTarget) -> None:
    assert all(piece.tokens for piece in measured(target, ids=False).path([message("system", 3), message("user", 9)]))


def test_a_template_survives_the_way_to_a_worker(target: FakeTarget) -> None:
    template = measured(target)
    assert Template.from_json(template.to_json()) == template
