"""Pressure: how many documents, tenants or sessions make a working set that is a multiple of the KV capacity."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from harness.errors import InputError, ScenarioError
from harness.workload.kinds import makers
from harness.workload.long_document import document_count, document_tokens
from harness.workload.scenario import LongDocument, Scenario
from harness.workload.sharing import as_share, bare, tree
from harness.workload.tree import Level, Share, total_of, tree_tokens, ways

MOST = 1_000_000
"""More documents, tenants or sessions are not asked for."""
TOLERANCE = 0.25
"""How far the pressure of a whole number of them may be from the one asked for, as a part of it."""
SAMPLE_SESSIONS = 200
"""So many sessions tell what one can come back to on average."""


def working_set_tokens(scenario: Scenario) -> int:
    """Distinct prefix tokens that requests of the scenario can come back to, without the template's.

    That is the whole sharing tree, and below each way down it the kind's shared parts (system prompt, tools, all the
    documents); with `running_sessions`, for each of them what its next request can reuse of the session's own parts, on
    average over its requests. Of more than 1,000 documents, or contents of a level, the lengths are estimated from the
    first ones.
    """
    levels = tree(scenario)
    own = scenario.running_sessions * _own_tokens(_one_document(scenario)) if scenario.running_sessions else 0
    return round(tree_tokens(levels, scenario.seed) + ways(levels) * _below_tree_tokens(scenario) + own)


def solve_pressure(scenario: Scenario, capacity_tokens: int | None) -> Scenario:
    """The scenario with the number filled in that its pressure asks for, of an engine with that KV capacity.

    The number is that of documents (long-document), else of contents of the tenant's level or of the lowest one
    (sharing), else of running sessions. It comes as near to the pressure as a whole number can; `capacity_tokens` is
    noted in the scenario. A capacity that the scenario has goes before. Without pressure the scenario is returned as it
    is. Solving again changes nothing.

    Raises InputError if the capacity is not known, ScenarioError if no number comes near to the pressure.
    """
    capacity = scenario.capacity_tokens or capacity_tokens
    if scenario.pressure is None:
        return scenario
    if capacity is None:
        raise InputError(
            f"Scenario {scenario.name} asks for a pressure of {scenario.pressure:g}, but the KV capacity of the target "
            "is not known: give identity.capacity_tokens in the target file, or capacity_tokens in the scenario."
        )
    return _solved(scenario.model_copy(update={"capacity_tokens": capacity}), scenario.pressure, capacity)


class _Knob(NamedTuple):
    """What the pressure decides about: things, and the scenario with so many of them."""

    things: str
    with_count: Callable[[int], Scenario]


@lru_cache(maxsize=64)
def _solved(scenario: Scenario, pressure: float, capacity: int) -> Scenario:
    knob = _knob(scenario)
    wanted = pressure * capacity

    def working_set(count: int) -> int:
        return working_set_tokens(knob.with_count(count))

    most = 1
    while most < MOST and working_set(most) < wanted:
        most *= 2
    above = bisect_left(range(most), wanted, lo=1, key=working_set)
    count = min(max(1, above - 1), above, key=lambda near: abs(working_set(near) - wanted))
    if abs(working_set(count) - wanted) > TOLERANCE * wanted:
        nearest = sorted({max(1, above - 1), above})
        given = ", ".join(f"{working_set(near) / capacity:.3g} with {near:,}" for near in nearest)
        raise ScenarioError(
            f"Scenario {scenario.name} cannot have a pressure of {pressure:g} on {capacity:,} tokens of KV capacity by "
            f"its number of {knob.things}: it is {given}; ask for another pressure, or change the lengths."
        )
    return knob.with_count(count)


def _knob(scenario: Scenario) -> _Knob:
    sharing = scenario.sharing
    if isinstance(scenario, LongDocument):
        return _Knob("documents", lambda count: scenario.model_copy(update={"documents": count}))
    if sharing is not None:
        return _Knob(
            "shared contents", lambda count: scenario.model_copy(update={"sharing": _with_fan_out(sharing, count)})
        )
    return _Knob("running sessions", lambda count: scenario.model_copy(update={"running_sessions": count}))


def _with_fan_out(sharing: float | Share | tuple[Level, ...], count: int) -> Share | tuple[Level, ...]:
    """The tree with so many contents at the tenant's level, or else at the lowest one, under each one above."""
    if not isinstance(sharing, tuple):
        return as_share(sharing).model_copy(update={"fan_out": count})
    chosen = next((place for place, level in enumerate(sharing) if level.tenant), len(sharing) - 1)
    level = sharing[chosen].model_copy(update={"fan_out": count})
    return (*sharing[:chosen], level, *sharing[chosen + 1 :])


def _below_tree_tokens(scenario: Scenario) -> float:
    """What stands once below each way down the tree."""
    make, _ = makers(_one_document(scenario))
    tokens = sum(segment.tokens for segment in make("", 0).shared_head if segment.kind != "document")
    if not isinstance(scenario, LongDocument):
        return tokens
    lengths = (document_tokens(scenario, document) for document in range(document_count(scenario)))
    return tokens + total_of(document_count(scenario), scenario.document_tokens, lengths)


@lru_cache(maxsize=64)
def _own_tokens(scenario: Scenario) -> float:
    """What a request can reuse of its own session alone, its question and all that others share left out."""
    make, _ = makers(scenario)
    tokens = requests = 0
    for number in range(SAMPLE_SESSIONS):
        session = make("", number)
        head = sum(segment.tokens for segment in session.shared_head)
        requests += len(session.turns)
        for turn in session.turns[1:]:
            before = session.scripted_prompt(turn.index)[:-1]
            tokens += sum(message.tokens for message in before) - head
    return tokens / requests


def _one_document(scenario: Scenario) -> Scenario:
    """A scenario whose sessions have the same parts but for the document, the same one whatever the pressure."""
    alone = bare(scenario)
    return alone.model_copy(update={"documents": 1}) if isinstance(alone, LongDocument) else alone
