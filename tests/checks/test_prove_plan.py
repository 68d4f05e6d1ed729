"""The prompts of a proof: what they share is what they say, counted in words."""

from __future__ import annotations

import pytest

from harness.checks.prompts import CHANCE_WORDS, SCENARIO
from harness.checks.prove_file import pieces
from harness.checks.prove_plan import NAMES, Plan, Probe
from harness.workload.content import content_id, id_words
from harness.workload.text import Renderer
from tests.checks.silent_server import common
from tests.checks.test_prompts import lexicon

LEXICON = lexicon()
TEXT = " ".join(f"word{number}" for number in range(400))


def plan(questions: int = 3, text: str = "") -> Plan:
    sized = [(piece, len(piece.split())) for piece in pieces(text)] if text else ()
    return Plan(LEXICON, lambda name: content_id("r1", name), questions, sized)


def words(probe: Probe) -> list[str]:
    (message,) = Renderer(LEXICON, SCENARIO).chat(probe.messages)
    return message["content"].split()


def shared(one: Probe, other: Probe) -> int:
    """Words, the opener as one of them, that both begin with."""
    return common(words(one), words(other))


@pytest.mark.parametrize("text", ["", TEXT])
def test_names_come_in_the_order_that_one_slot_can_serve(text: str) -> None:
    names = [probe.name for probe in plan(text=text).probes(0, 1000)]
    assert names == ["cold", "warm", "warm", "repeat", "tail", "middle", "first"]
    assert list(dict.fromkeys(names)) == list(NAMES)


@pytest.mark.parametrize("text", ["", TEXT])
def test_prompts_share_with_those_before_what_they_say(text: str) -> None:
    """Tokens of the template's head (here 4) and the opener come before the words that are counted here."""
    head = LEXICON.template.head["user"]
    probes = plan(text=text).probes(0, 1000)
    for number, probe in enumerate(probes[1:-1], start=1):
        most = max(shared(probe, earlier) for earlier in probes[:number])
        if probe.name == "repeat":
            assert most == len(words(probe))
        else:
            assert probe.least_shared <= head + most <= probe.most_shared
            assert probe.most_shared == probe.least_shared + CHANCE_WORDS


@pytest.mark.parametrize("text", ["", TEXT])
def test_the_control_differs_in_its_first_word(text: str) -> None:
    """And hardly anywhere else: behind the mark stands the same text."""
    cold, *_, control = plan(text=text).probes(0, 1000)
    assert words(cold)[1] != words(control)[1]
    mark = 1 + id_words(64)  # the opener, and the words that spell an id
    assert words(cold)[mark:] == words(control)[mark:]
    assert (control.least_shared, cold.least_shared) == (0, 0)


def test_lengths_are_exact() -> None:
    template = LEXICON.template
    around = template.head["user"] + template.opener_tokens + template.tail["user"]
    made = plan()
    for probe in made.probes(7, 1000):
        extra = 16 if probe.name in ("tail", "middle") else 0
        assert template.tokens(probe.messages) == around + 1000 + extra + made.question_tokens
    assert max(template.tokens(probe.messages) for probe in made.probes(7, 1000)) + 1 == 1000 + made.around_tokens


def test_two_prefixes_share_nothing_but_what_every_chat_does() -> None:
    made = plan()
    assert shared(made.probes(0, 500)[0], made.probes(1, 500)[0]) <= 1 + CHANCE_WORDS


def test_pieces_of_a_file_are_the_file() -> None:
    assert "".join(pieces(TEXT)) == f"\n{TEXT}"
    middle, nine_tenths, end = (len(piece.split()) for piece in pieces(TEXT))
    assert (round(middle / 400, 1), round(nine_tenths / 400, 1), round(end / 400, 1)) == (0.5, 0.4, 0.1)
