from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

import pytest

from harness.errors import ScenarioError
from harness.workload.learning import learn
from harness.workload.lexicon import Lexicon
from harness.workload.scenario import Scenario
from harness.workload.session import Message, Segment
from harness.workload.text import Renderer, unrelated_prompt
from harness.workload.workload import Workload
from tests.workload.fake_target import FakeTarget
from tests.workload.samples import agent_loop, long_document, multi_round, pairs, scripted_prompts, shared_by_paths

TREE = [{"name": "tenant", "fan_out": 3, "tokens": {"uniform": [5, 30]}}, {"name": "folder", "fan_out": 2, "tokens": 9}]
EACH_KIND = pytest.mark.parametrize(
    "scenario",
    [agent_loop(), long_document(), multi_round(), multi_round(system_tokens=0, sharing=TREE)],
    ids=lambda scenario: f"{scenario.kind}{'-shared' * bool(scenario.sharing)}",
)


def learnt(target: FakeTarget, scenario: Scenario) -> Lexicon:
    return learn(target.count_text, target.count_chat, target.chat_tokens, scenario)


def segment(identity: int, tokens: int) -> Segment:
    return Segment("user", identity, tokens)


@EACH_KIND
def test_every_prompt_counts_exactly_what_its_path_adds_up_to(scenario: Scenario, target: FakeTarget) -> None:
    lexicon = learnt(target, scenario)
    renderer, workload = Renderer(lexicon, scenario), Workload(scenario, "run")
    for number in range(40):
        for prompt in scripted_prompts(workload.session(number)):
            assert sum(segment.tokens for segment in renderer.path(prompt)) == target.count_chat(renderer.chat(prompt))


@EACH_KIND
def test_paths_tell_which_leading_tokens_any_two_prompts_share(scenario: Scenario, target: FakeTarget) -> None:
    lexicon = learnt(target, scenario)
    renderer, workload = Renderer(lexicon, scenario), Workload(scenario, "run")
    prompts = [prompt for number in range(8) for prompt in scripted_prompts(workload.session(number))]
    paths = [pairs(renderer.path(prompt)) for prompt in prompts]
    ids = [target.chat_tokens(renderer.chat(prompt)) or () for prompt in prompts]
    for path_a, ids_a in zip(paths, ids, strict=True):
        for path_b, ids_b in zip(paths, ids, strict=True):
            shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(ids_a, ids_b, strict=False))))
            assert shared_by_paths(path_a, path_b, len(lexicon.words)) == shared


def test_a_message_is_its_opener_and_its_segments_end_to_end(target: FakeTarget) -> None:
    lexicon = learnt(target, agent_loop())
    renderer = Renderer(lexicon, agent_loop())
    one, two = segment(5, 3), segment(-9, 12)
    content = renderer.content(Message("system", (one, two)))
    alone = [renderer.content(Message("system", (part,))) for part in (one, two)]
    assert content == alone[0] + alone[1].removeprefix("#")
    assert content.startswith("# ")
    assert len(content.split()) == 1 + 3 + 12


def test_a_chat_has_the_roles_and_contents_of_its_messages(target: FakeTarget) -> None:
    renderer = Renderer(learnt(target, agent_loop()), agent_loop())
    messages = [Message("system", (segment(5, 3),)), Message("user", (segment(6, 4),))]
    assert renderer.chat(messages) == [
        {"role": "system", "content": renderer.content(messages[0])},
        {"role": "user", "content": renderer.content(messages[1])},
    ]


def test_a_live_answer_is_sent_back_as_it_came(target: FakeTarget) -> None:
    renderer = Renderer(learnt(target, agent_loop()), agent_loop())
    said = " Well,\nthe tool said 3. "
    assert renderer.content(Message("assistant", (Segment("reply", 5, 9, text=said),))) == said


def test_documents_hold_the_corpus_after_the_words_of_their_id(target: FakeTarget) -> None:
    scenario = long_document()
    lexicon = learnt(target, scenario)
    message = Workload(scenario, "run").session(0).opening[0]
    content = Renderer(lexicon, scenario).content(message)
    words, text = content.split("\n\n", 1)
    assert len(words.split()) == 1 + 12 + 8  # opener, system prompt, id
    assert len(text) > 100


def test_documents_of_words_are_words_only(target: FakeTarget) -> None:
    scenario = long_document(corpus="words")
    lexicon = learnt(target, scenario)
    message = Workload(scenario, "run").session(0).opening[0]
    assert len(Renderer(lexicon, scenario).content(message).split()) == 1 + message.tokens


def test_another_corpus_than_the_prepared_one_is_refused(target: FakeTarget) -> None:
    scenario = long_document()
    lexicon = replace(learnt(target, scenario), corpus="another")
    with pytest.raises(ScenarioError, match="python-docs of scenario small is not the one"):
        Renderer(lexicon, scenario)


def test_an_unrelated_prompt_has_the_wanted_length_and_shares_only_the_head(target: FakeTarget) -> None:
    lexicon = learnt(target, agent_loop())
    renderer = Renderer(lexicon, agent_loop())
    one, other = (unrelated_prompt(lexicon, tag, 60) for tag in ("1", "2"))
    assert [message.role for message in one] == ["user"]
    assert target.count_chat(renderer.chat(one)) == 60
    head = lexicon.template.head["user"] + lexicon.template.opener_tokens
    assert shared_by_paths(pairs(renderer.path(one)), pairs(renderer.path(other)), len(lexicon.words)) == head


def test_an_unrelated_prompt_has_a_word_at_least(target: FakeTarget) -> None:
    lexicon = learnt(target, agent_loop())
    assert unrelated_prompt(lexicon, "x", 1)[0].tokens == 1
