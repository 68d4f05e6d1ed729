"""The sharing tree: what stands at the beginning of prompts, and which sessions have it in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from harness.workload.content import content_id
from harness.workload.learning import learn
from harness.workload.scenario import Scenario
from harness.workload.session import LEVELS as LEVELS_OF_PARTS
from harness.workload.session import Segment, Session
from harness.workload.tree import Level, tree_tokens, ways
from harness.workload.workload import Workload
from tests.workload.fake_target import FakeTarget
from tests.workload.samples import agent_loop, long_document, multi_round, scripted_prompts

LEVELS: list[dict[str, object]] = [
    {"name": "base", "fan_out": 1, "tokens": 10},
    {"name": "tenant", "fan_out": 4, "tokens": {"uniform": [5, 50]}, "tenant": True},
    {"name": "folder", "fan_out": 3, "tokens": {"uniform": [5, 50]}},
]
EACH_KIND = pytest.mark.parametrize("kind", [agent_loop, long_document, multi_round], ids=lambda kind: kind.__name__)


def shared(session: Session) -> list[Segment]:
    return [segment for segment in session.opening[0].segments if segment.kind == "shared"]


def skewed(levels: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**level, "popularity": {"zipf": 2.0}} for level in levels]


@EACH_KIND
def test_shared_contents_stand_before_the_parts_of_the_kind_which_stay_as_they_are(
    kind: Callable[..., Scenario],
) -> None:
    with_tree, without = Workload(kind(sharing=LEVELS), "n"), Workload(kind(), "n")
    for number in range(20):
        one, other = with_tree.session(number), without.session(number)
        assert one.turns == other.turns
        assert one.opening[0].role == "system"
        assert one.opening[0].segments[3:] == other.opening[0].segments
        assert [segment.kind for segment in one.opening[0].segments[:3]] == ["shared"] * 3


@EACH_KIND
def test_each_content_names_its_level(kind: Callable[..., Scenario]) -> None:
    session = Workload(kind(sharing=LEVELS), "n").session(0)
    assert [segment.level for segment in shared(session)] == ["base", "tenant", "folder"]
    assert [segment.level for segment in shared(Workload(kind(sharing=0.99), "n").session(0))] == ["shared"]
    with_parts = {segment.level for message in session.scripted_prompt(1) for segment in message.segments}
    assert with_parts <= {"base", "tenant", "folder", *LEVELS_OF_PARTS.values()}


def test_no_level_of_a_tree_can_be_called_as_another_part_is() -> None:
    for name in LEVELS_OF_PARTS.values():
        with pytest.raises(ValidationError, match="name"):
            Level.model_validate({"name": name, "fan_out": 1, "tokens": 1})


def test_a_session_without_a_system_message_gets_one() -> None:
    session = Workload(multi_round(system_tokens=0, preamble_tokens=0, sharing=LEVELS), "n").session(0)
    assert [message.role for message in scripted_prompts(session)[0]] == ["system", "user"]


def test_a_content_is_named_by_all_names_and_choices_from_the_root_down_to_it() -> None:
    workload = Workload(agent_loop(sharing=LEVELS), "n")
    of_ways = {tuple(segment.content_id for segment in shared(workload.session(number))) for number in range(300)}
    assert of_ways == {
        (
            content_id("0/n", "sharing", "base", 0),
            content_id("0/n", "sharing", "base", 0, "tenant", tenant),
            content_id("0/n", "sharing", "base", 0, "tenant", tenant, "folder", folder),
        )
        for tenant in range(4)
        for folder in range(3)
    }


def test_a_content_has_one_length_wherever_it_stands() -> None:
    workload = Workload(agent_loop(sharing=LEVELS), "n")
    seen = {
        (segment.content_id, segment.tokens) for number in range(300) for segment in shared(workload.session(number))
    }
    assert len(seen) == 1 + 4 + 12
    assert len({identity for identity, _ in seen}) == len(seen)
    assert len({tokens for _, tokens in seen}) > 8


def test_skew_changes_how_often_contents_are_chosen_and_neither_texts_nor_lengths() -> None:
    even, skew = (Workload(agent_loop(sharing=levels), "n") for levels in (LEVELS, skewed(LEVELS)))
    tenants: Counter[str | None] = Counter()
    contents = set()
    for number in range(300):
        assert even.session(number).turns == skew.session(number).turns
        tenants[skew.session(number).tenant] += 1
        contents |= {(segment.content_id, segment.tokens) for segment in shared(skew.session(number))}
    # Weights 1, 1/4, 1/9 and 1/16: 211, 53, 23 and 13 of 300 are expected.
    assert tenants["tenant-0"] > 180
    assert tenants["tenant-0"] > tenants["tenant-1"] > tenants["tenant-2"]
    assert contents <= {(one.content_id, one.tokens) for number in range(300) for one in shared(even.session(number))}


def test_levels_are_chosen_independently_of_each_other() -> None:
    workload = Workload(agent_loop(sharing=LEVELS), "n")
    chosen = Counter(shared(workload.session(number))[2].content_id for number in range(1200))
    assert len(chosen) == 12
    assert all(65 <= times <= 135 for times in chosen.values())  # 100 are expected, with a deviation of 10


def test_more_contents_leave_texts_and_lengths_of_those_that_were_there() -> None:
    more = [{**level, "fan_out": 9} for level in LEVELS]
    few, many = (Workload(agent_loop(sharing=levels), "n") for levels in (LEVELS, more))
    known = {segment.content_id: segment.tokens for number in range(99) for segment in shared(few.session(number))}
    both = [segment for number in range(999) for segment in shared(many.session(number)) if segment.content_id in known]
    assert both
    assert all(segment.tokens == known[segment.content_id] for segment in both)


def test_a_tenant_is_named_by_its_level_and_the_choices_down_to_it() -> None:
    regions = [{"name": "region", "fan_out": 2, "tokens": 5}, *LEVELS]
    tenants = {Workload(agent_loop(sharing=regions), "n").session(number).tenant for number in range(300)}
    assert tenants == {f"tenant-{region}.{tenant}" for region in range(2) for tenant in range(4)}
    assert Workload(agent_loop(), "n").session(0).tenant is None
    assert Workload(agent_loop(sharing=LEVELS[:1]), "n").session(0).tenant is None


def test_sessions_of_one_tenant_share_its_contents() -> None:
    workload = Workload(multi_round(sharing=LEVELS), "n")
    by_tenant = {(session.tenant, shared(session)[1]) for session in map(workload.session, range(100))}
    assert len(by_tenant) == 4


@EACH_KIND
def test_no_prompt_with_a_tree_is_longer_than_the_bound(kind: Callable[..., Scenario], target: FakeTarget) -> None:
    scenario = kind(sharing=LEVELS)
    workload = Workload(scenario, "n")
    template = learn(target.count_text, target.count_chat, target.chat_tokens, scenario).template
    longest = max(template.tokens(scripted_prompts(workload.session(number))[-1]) for number in range(300))
    assert longest <= workload.longest_prompt_tokens(template)
    fixed = kind(sharing=[{"name": "a", "fan_out": 3, "tokens": 50}])
    grown = Workload(fixed, "").longest_prompt_tokens(template) - Workload(kind(), "").longest_prompt_tokens(template)
    assert grown == 50


def test_ways_and_tokens_of_a_tree_are_those_of_all_its_contents() -> None:
    levels = [Level.model_validate(level) for level in LEVELS]
    workload = Workload(agent_loop(sharing=LEVELS), "n")
    contents = {(one.content_id, one.tokens) for number in range(300) for one in shared(workload.session(number))}
    assert ways(levels) == 12
    assert tree_tokens(levels, 0) == sum(tokens for _, tokens in contents)
    assert ways([]) == 1
    assert tree_tokens([], 0) == 0


def test_tokens_of_very_many_contents_are_about_their_number_times_the_mean() -> None:
    level = Level.model_validate({"name": "a", "fan_out": 50_000, "tokens": {"uniform": [5, 50]}})
    assert tree_tokens([level], 0) == pytest.approx(50_000 * 27.5, rel=0.05)
