"""The prompts of the check: exact lengths, known shares, and room for the engine's blocks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checks.prompts import OUTPUT_TOKENS, SCENARIO, Lengths, Prompt, choose_lengths, prompts
from harness.workload.lexicon import Lexicon
from harness.workload.template import Template
from harness.workload.text import Renderer
from harness.workload.words import CANDIDATES


def lexicon(words: int = 64, head: int = 3, tail: int = 4, head_known: bool = True, exact: bool = True) -> Lexicon:
    """A template of `head` tokens before and `tail` after a user message, whose opener is one more."""
    if not head_known:
        head, tail = 0, head + tail
    template = Template(1, {"user": head}, {}, {"user": tail}, head_known, reply_after_tail=False)
    return Lexicon(CANDIDATES[:words], template, documents=(), corpus="", exact=exact, notes=())


def tokens(prompt: Prompt, known: Lexicon, head: int) -> list[str]:
    """The prompt as a tokeniser that has a token for each word sees it: `head` tokens, opener, words, the rest."""
    words = Renderer(known, SCENARIO).chat(prompt.messages)[0]["content"].split()
    length = known.template.tokens(prompt.messages)
    return [*(f"<{number}>" for number in range(head)), *words, *["<end>"] * (length - head - len(words))]


def shared(one: list[str], other: list[str]) -> int:
    return next((number for number, pair in enumerate(zip(one, other, strict=True)) if len(set(pair)) > 1), len(one))


@given(st.text(max_size=5), st.sampled_from([16, 17, 64, 512]), st.sampled_from([128, 1024]), st.integers(0, 20))
def test_lengths_and_shares_are_exact_to_the_token(label: str, words: int, length: int, head: int) -> None:
    known, lengths = lexicon(words, head), Lengths(length)
    made = prompts(known, label, lengths)
    seen = {name: tokens(prompt, known, head) for name, prompt in made.items()}
    assert {len(prompt) for prompt in seen.values()} == {length}
    assert seen["repeat"] == seen["cold"]
    assert (made["repeat"].least_shared, made["repeat"].most_shared) == (length, length)
    for name in ("half", "part"):
        assert shared(seen["cold"], seen[name]) == made[name].least_shared == made[name].most_shared
    assert made["half"].least_shared == length // 2 - 1
    assert made["part"].least_shared == lengths.part


def test_paths_part_where_the_texts_do() -> None:
    known, lengths = lexicon(), Lengths(1024)
    made = {name: known.template.path(prompt.messages) for name, prompt in prompts(known, "run", lengths).items()}
    for name, wanted in (("half", 511), ("part", 405)):
        common = 0
        for one, other in zip(made["cold"], made[name], strict=False):
            if one != other:
                break
            common += one.tokens
        assert common == wanted
        assert sum(segment.tokens for segment in made[name]) == 1024


def test_another_label_and_the_ids_prompt_share_the_templates_head_and_few_words() -> None:
    known, lengths = lexicon(head=5), Lengths(1024)
    first, second = prompts(known, "one", lengths), prompts(known, "two", lengths)
    cold = tokens(first["cold"], known, 5)
    for other in (second["cold"], second["ids"], first["ids"]):
        assert 6 <= shared(cold, tokens(other, known, 5)) <= other.most_shared == 9


def test_a_head_that_was_not_seen_may_be_shared_wherever_it_stands() -> None:
    known, lengths = lexicon(head=5, tail=4, head_known=False), Lengths(1024)
    made = prompts(known, "run", lengths)
    seen = {name: tokens(prompt, known, 5) for name, prompt in made.items()}
    assert (made["half"].least_shared, made["half"].most_shared) == (511, 520)
    assert shared(seen["cold"], seen["half"]) == 516
    assert made["cold"].most_shared == 13
    assert {len(prompt) for prompt in seen.values()} == {1024}


def test_approximate_lengths_leave_a_twentieth_to_either_side() -> None:
    made = prompts(lexicon(exact=False), "run", Lengths(1024))
    assert (made["half"].least_shared, made["half"].most_shared) == (511 - 51, 511 + 51)
    assert (made["repeat"].least_shared, made["repeat"].most_shared) == (1024, 1024)


@pytest.mark.parametrize(
    ("context", "granularity", "expected"),
    [
        (None, None, 1024),
        (32_768, 1, 1024),
        (32_768, 256, 1024),
        (32_768, 257, 2048),
        (32_768, 784, 4096),
        (4096, 784, 2048),  # 4,096 and the answer do not fit
        (1024 + OUTPUT_TOKENS, 16, 1024),
        (1024, 16, 512),
        (512, 1, 256),
        (None, 1_000_000, 16_384),
    ],
)
def test_lengths_suit_blocks_and_context(context: int | None, granularity: int | None, expected: int) -> None:
    assert choose_lengths(lexicon(), context, granularity) == Lengths(expected)


def test_a_long_template_takes_longer_prompts() -> None:
    assert choose_lengths(lexicon(head=300), None, 1) == Lengths(2048)
    assert choose_lengths(lexicon(head=300), 1024 + OUTPUT_TOKENS, 1) == Lengths(1024)


def test_there_are_no_lengths_for_a_context_without_room() -> None:
    assert choose_lengths(lexicon(), 64, 1) is None
    assert choose_lengths(lexicon(head=300), 600, 1) is None


def test_the_three_lengths_lie_apart() -> None:
    for prompt in (128, 1024, 16_384):
        lengths = Lengths(prompt)
        assert all(longer - shorter > 8 for shorter, longer in pairwise([0, lengths.part, lengths.half, prompt]))
