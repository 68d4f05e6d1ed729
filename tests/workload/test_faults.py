"""Arrangement faults: the same sessions, sent so that a cache finds less."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile

import pytest

from harness.workload.learning import learn
from harness.workload.scenario import Scenario
from harness.workload.session import Message, Session
from harness.workload.sharing import achieved_sharing
from harness.workload.text import Renderer
from harness.workload.workload import Workload
from tests.workload.fake_target import FakeTarget
from tests.workload.samples import agent_loop, long_document, multi_round, scripted_prompts, tokens_of

CASES = [
    ("timestamp-first", agent_loop()),
    ("timestamp-first", long_document(system_tokens=0, documents=5)),
    ("request-id-first", multi_round(system_tokens=0, preamble_tokens=0)),
    ("request-id-first", long_document(system_tokens=0, documents=5)),
    ("tools-shuffled", agent_loop()),
    ("preamble-first", multi_round()),
    ("passages-reranked", long_document(corpus="words", documents=5)),
    ("whitespace-changed", agent_loop()),
    ("whitespace-changed", long_document(system_tokens=0, documents=5)),
    ("whitespace-changed", multi_round()),
]
EACH = pytest.mark.parametrize(("kind", "scenario"), CASES, ids=lambda case: getattr(case, "kind", case))


def faulty(scenario: Scenario, kind: str, rate: float = 1.0) -> Scenario:
    return type(scenario).model_validate(scenario.model_dump() | {"fault": {"kind": kind, "rate": rate}})


def sessions(scenario: Scenario, count: int = 30) -> list[Session]:
    return [Workload(scenario, "n").session(number) for number in range(count)]


def prompts(scenario: Scenario) -> list[tuple[Message, ...]]:
    return [prompt for session in sessions(scenario) for prompt in scripted_prompts(session)]


def shared(one: list[tuple[object, ...]], other: list[tuple[object, ...]]) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


@EACH
def test_only_the_first_message_changes_and_its_length_does_not(kind: str, scenario: Scenario) -> None:
    for sound, sent in zip(prompts(scenario), prompts(faulty(scenario, kind)), strict=True):
        assert sent[1:] == sound[1:]
        assert sent[0] != sound[0]
        assert (sent[0].role, sent[0].tokens) == (sound[0].role, sound[0].tokens)


@EACH
def test_everything_else_of_the_sessions_stays(kind: str, scenario: Scenario) -> None:
    for sound, other in zip(sessions(scenario), sessions(faulty(scenario, kind)), strict=True):
        assert (other.opening, other.turns, other.tenant) == (sound.opening, sound.turns, sound.tenant)


@EACH
def test_a_request_that_is_not_hit_is_sent_as_it_was(kind: str, scenario: Scenario) -> None:
    hit = 0
    for sound, other in zip(sessions(scenario), sessions(faulty(scenario, kind, 0.4)), strict=True):
        for turn, (before, after) in enumerate(zip(scripted_prompts(sound), scripted_prompts(other), strict=True)):
            assert other.fault(turn) in (None, kind)
            assert (other.fault(turn) is None) == (before == after)
            hit += other.fault(turn) is not None
            assert sound.fault(turn) is None
    assert 0.2 < hit / sum(len(session.turns) for session in sessions(scenario)) < 0.6


@EACH
def test_a_fault_costs_sharing(kind: str, scenario: Scenario) -> None:
    none, some = (achieved_sharing(Workload(faulty(scenario, kind, rate), "n"), 30) for rate in (0.0, 0.5))
    assert none == achieved_sharing(Workload(scenario, "n"), 30)
    assert some < none - 0.01


@EACH
def test_prompts_with_a_fault_count_exactly_what_their_paths_add_up_to(
    kind: str, scenario: Scenario, target: FakeTarget
) -> None:
    lexicon = learn(target.count_text, target.count_chat, target.chat_tokens, scenario)
    renderer = Renderer(lexicon, scenario)
    for prompt in prompts(faulty(scenario, kind))[:40]:
        assert sum(segment.tokens for segment in renderer.path(prompt)) == target.count_chat(renderer.chat(prompt))


@EACH
def test_texts_share_what_their_pieces_do(kind: str, scenario: Scenario, target: FakeTarget) -> None:
    """But for the first words of two different pieces, which are equal by accident once in about 500 times."""
    lexicon = learn(target.count_text, target.count_chat, target.chat_tokens, scenario)
    renderer = Renderer(lexicon, scenario)
    some = prompts(faulty(scenario, kind, 0.5))[:50]
    sent = [(tokens_of(prompt[:1]), _words(renderer, prompt[0])) for prompt in some]
    partings, accidents = 0, set()
    for index, (one, words) in enumerate(sent):
        for other, other_words in sent[:index]:
            pieces = shared(one, other)
            if scenario.kind == "long-document" and pieces > 50:
                continue  # one document, of real text, whose words are not its tokens
            partings += 1
            if excess := shared(words, other_words) - pieces:
                accidents.add((excess, *one[pieces : pieces + 1], *other[pieces : pieces + 1]))
    assert partings > 300
    assert {excess for excess, *_ in accidents} <= {1, 2}
    assert len(accidents) <= 3


def _words(renderer: Renderer, message: Message) -> list[tuple[object, ...]]:
    return [(word,) for word in renderer.content(message).removeprefix("#").split()]


@EACH
def test_which_requests_are_hit_depends_on_neither_the_kind_of_fault_nor_the_nonce(
    kind: str, scenario: Scenario
) -> None:
    def hit(kind: str, nonce: str) -> list[tuple[int, int]]:
        workload = Workload(faulty(scenario, kind, 0.5), nonce)
        turns = [(session, turn.index) for session in range(20) for turn in workload.session(session).turns]
        return [(session, turn) for session, turn in turns if workload.session(session).fault(turn)]

    assert hit(kind, "a") == hit("timestamp-first", "b")


def test_a_higher_rate_hits_the_same_requests_and_more() -> None:
    def hit(rate: float) -> set[tuple[int, int]]:
        made = sessions(faulty(agent_loop(), "timestamp-first", rate))
        return {(session.number, turn.index) for session in made for turn in session.turns if session.fault(turn.index)}

    assert hit(0.0) < hit(0.2) < hit(0.5) < hit(1.0)


def test_a_request_id_leaves_nothing_to_share_and_a_timestamp_its_date() -> None:
    for kind, common in (("request-id-first", 0), ("timestamp-first", 2)):
        tokens = [tokens_of(prompt) for prompt in prompts(faulty(agent_loop(), kind))]
        assert {shared(one, other) for one in tokens for other in tokens if one is not other} == {common}


def test_a_stamp_takes_the_place_of_the_first_six_tokens() -> None:
    (sound, *_), (sent, *_) = prompts(agent_loop()), prompts(faulty(agent_loop(), "timestamp-first"))
    assert [segment.tokens for segment in sent[0].segments] == [2, 4, 12 - 6, 20]
    assert tokens_of(sent)[6:] == tokens_of(sound)[6:]


def test_a_first_part_that_is_shorter_than_a_stamp_gives_way_to_it() -> None:
    scenario = faulty(agent_loop(system_tokens=4), "request-id-first")
    assert [segment.tokens for segment in prompts(scenario)[0][0].segments] == [4, 20]


def test_shuffled_tools_are_the_same_tools_in_an_order_of_the_requests_own() -> None:
    (sound, *_), sent = prompts(agent_loop()), prompts(faulty(agent_loop(), "tools-shuffled"))
    tools = sorted(tokens_of(sound[:1])[12:])
    assert all(sorted(tokens_of(prompt[:1])[12:]) == tools for prompt in sent)
    assert len({tuple(tokens_of(prompt[:1])) for prompt in sent}) > len(sent) / 2


def test_passages_are_the_same_in_another_order() -> None:
    scenario = long_document(corpus="words")
    for sound, sent in zip(prompts(scenario), prompts(faulty(scenario, "passages-reranked")), strict=True):
        assert tokens_of(sound[:1])[:12] == tokens_of(sent[:1])[:12]
        assert sorted(tokens_of(sound)) == sorted(tokens_of(sent))


def test_the_preamble_moves_before_all_that_sessions_share() -> None:
    tree = [{"name": "corpus", "fan_out": 2, "tokens": 30}]
    scenario = multi_round(sharing=tree, fault={"kind": "preamble-first"})
    kinds = [[segment.kind for segment in prompt[0].segments] for prompt in prompts(scenario)]
    assert kinds == [["preamble", "shared", "system"]] * len(kinds)


def test_one_token_is_another_and_the_rest_of_the_words_the_same(target: FakeTarget) -> None:
    scenario = agent_loop()
    renderer = Renderer(learn(target.count_text, target.count_chat, target.chat_tokens, scenario), scenario)
    places = set()
    for sound, sent in zip(prompts(scenario), prompts(faulty(scenario, "whitespace-changed")), strict=True):
        pairs = zip(_words(renderer, sound[0]), _words(renderer, sent[0]), strict=True)
        (place,) = [place for place, (before, after) in enumerate(pairs) if before != after]
        places.add(place)
    assert min(places) < 12 <= max(places) < 32  # in the system prompt or in the tools


@pytest.mark.parametrize("kind", ["timestamp-first", "request-id-first", "whitespace-changed"])
def test_a_real_document_keeps_its_text(kind: str, target: FakeTarget) -> None:
    scenario = long_document(system_tokens=0)
    renderer = Renderer(learn(target.count_text, target.count_chat, target.chat_tokens, scenario), scenario)
    for sound, sent in zip(prompts(scenario), prompts(faulty(scenario, kind)), strict=True):
        assert renderer.content(sound[0]).split("\n\n", 1)[1] == renderer.content(sent[0]).split("\n\n", 1)[1]


def test_tools_of_one_token_cannot_be_shuffled_and_count_as_sound() -> None:
    scenario = agent_loop(tools_tokens={"uniform": [1, 2]}, seed=1, fault={"kind": "tools-shuffled"})
    drawn = Workload(scenario, "n").session(0)
    assert [segment.tokens for segment in drawn.opening[0].segments] == [12, 1]
    assert drawn.fault(0) is None


@EACH
def test_what_a_fault_moves_or_changes_keeps_its_level(kind: str, scenario: Scenario) -> None:
    tree = type(scenario).model_validate(
        scenario.model_dump() | {"sharing": [{"name": "tenant", "fan_out": 2, "tokens": 30}]}
    )
    for sound, sent in zip(prompts(tree), prompts(faulty(tree, kind)), strict=True):
        before, after = (_tokens_by_level(prompt) for prompt in (sound, sent))
        stamped = after.pop("arrangement fault", 0)
        assert stamped == (6 if kind in ("timestamp-first", "request-id-first") else 0)
        after["tenant"] += stamped
        assert after == before


def _tokens_by_level(prompt: tuple[Message, ...]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for message in prompt:
        for segment in message.segments:
            counts[segment.level] += segment.tokens
    return counts
