"""From one difference between two prompts to the next: each is named, put right in both, and looked behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.lint.differing import Place, first_difference
from harness.lint.moving import value_step
from harness.lint.orders import keys_step, tools_step
from harness.lint.passages import passages_step
from harness.lint.preamble import preamble_step
from harness.lint.rule import Step
from harness.lint.segments import Segments
from harness.lint.spacing import spacing_step

RULES: Sequence[Callable[[Segments, Segments, Place], Step | None]] = (
    tools_step,
    keys_step,
    spacing_step,
    passages_step,
    value_step,
    preamble_step,
)
"""The first that knows a difference has it."""
MOST_STEPS = 24
_NEAR_CHARACTERS = 64


def steps(earlier: Segments, later: Segments) -> Iterator[tuple[Place, Step]]:
    """The differences that some rule knows, from the first one up to one that none knows, each with its place.

    The place is one in the prompts as the steps before left them.
    """
    for _ in range(MOST_STEPS):
        at = first_difference(earlier, later)
        step = None if at is None else _step(earlier, later, at)
        if at is None or step is None:
            return
        yield at, step
        earlier, later = step.earlier, step.later


def _step(earlier: Segments, later: Segments, at: Place) -> Step | None:
    step = _first(earlier, later, at)
    if step is None or step.kind != "request-id-first":
        return step
    following = first_difference(step.earlier, step.later)
    if following is not None and _is_near(at, following):
        behind = _first(step.earlier, step.later, following)
        if behind is not None and behind.kind == "preamble-first":
            # A customer's number is a part of what is told about the customer.
            return preamble_step(earlier, later, at) or step
    return step


def _first(earlier: Segments, later: Segments, at: Place) -> Step | None:
    return next((step for rule in RULES if (step := rule(earlier, later, at)) is not None), None)


def _is_near(at: Place, following: Place) -> bool:
    return following.segment == at.segment and following.at - at.at < _NEAR_CHARACTERS
