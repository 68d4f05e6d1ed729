from __future__ import annotations

from harness.sim.generation import Generation
from harness.sim.request import Plan, Request


def test_what_was_lost_is_the_most_that_was_ever_computed() -> None:
    generation = Generation(range(20), 5)
    request = Request(generation, None, iter(range(5)).__next__, tokens=20, end_tokens=25)
    for computed in (18, 7):
        request.computed, request.decoding = computed, True
        request.lose()
        assert (request.computed, request.decoding, request.left) == (0, False, 20)
    assert (request.lost, generation.preemptions) == (18, 2)


def test_a_plan_works_if_it_computes_something() -> None:
    request = Request(Generation(range(20), 5), None, iter(range(5)).__next__, tokens=20, end_tokens=25)
    assert not Plan(preempted=[request], refused=[request]).works
    assert Plan(parts=[(request, 20)]).works
    assert Plan(decodes=[request]).works
