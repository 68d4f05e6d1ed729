from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.workload.prefixes import Prefixes, planned_reuse
from harness.workload.session import Message, Segment
from harness.workload.workload import Workload
from tests.workload.samples import agent_loop, tokens_of

PIECES = st.builds(Segment, st.just("user"), st.integers(1, 3), st.integers(1, 5))


def shared(one: list[tuple[object, ...]], other: list[tuple[object, ...]]) -> int:
    """Leading tokens in common, by comparing them one by one."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


@given(st.lists(st.lists(PIECES, max_size=5), max_size=8))
def test_prefixes_are_known_to_the_token(prompts: list[list[Segment]]) -> None:
    prefixes, before = Prefixes(), list[list[tuple[object, ...]]]()
    for prompt in prompts:
        tokens = tokens_of([Message("user", tuple(prompt))])
        known = prefixes.add(prompt)
        assert known == max((shared(tokens, other) for other in before), default=0)
        before.append(tokens)
    assert prefixes.tokens == len({tuple(each[:end]) for each in before for end in range(1, len(each) + 1)})


def test_a_shorter_piece_of_one_id_is_a_prefix_of_the_longer_and_other_ids_share_nothing() -> None:
    prefixes = Prefixes()
    long, short, other = Segment("user", 1, 300), Segment("user", 1, 100), Segment("user", 2, 5)
    assert [prefixes.add(path) for path in ([long], [short, other], [short, other], [long, other], [other])] == [
        0,
        100,
        105,
        300,
        0,
    ]
    assert prefixes.tokens == 300 + 5 + 5 + 5


def test_reuse_is_counted_over_all_requests() -> None:
    scenario = agent_loop(
        system_tokens=10, tools_tokens=20, task_tokens=30, steps=2, observation_tokens=5, output_tokens=3
    )
    reuse = planned_reuse(map(Workload(scenario, "n").session, range(3)))
    # Each session sends 10 + 20 + 30, then 3 + 5 more; system prompt and tools are new once.
    assert reuse == (6, 3 * (60 + 68), 30 + 3 * (30 + 8))
    assert reuse.share == 1 - 144 / 384
