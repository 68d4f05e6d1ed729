"""Random traffic for a cache model and its twin: requests that grow, branch, repeat, overlap and are given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from harness.cache.base import Item

Tokens = tuple[int, ...]


def plain(prompt: Sequence[Item]) -> Tokens:
    """The same prompt token by token: different items differ in their first token, equal ids run alike."""
    return tuple(identity * 1000 + position for identity, length in prompt for position in range(length))


@dataclass(frozen=True)
class Step:
    """Numbers to choose by, taken modulo what there is to choose from."""

    action: str
    which: int
    """Start: which earlier sequence the prompt begins as. Else: which of the requests under way."""
    keep: int
    """Items that are kept of it."""
    more: tuple[Item, ...]
    """What is added: to the prompt at its start, as output at its end."""
    option: int


_items = st.tuples(st.integers(1, 3), st.integers(1, 6) | st.just(50))


def steps(actions: Sequence[str], size: int = 40) -> st.SearchStrategy[list[Step]]:
    step = st.builds(
        Step,
        action=st.sampled_from(actions),
        which=st.integers(0, 30),
        keep=st.integers(0, 12),
        more=st.lists(_items, min_size=1, max_size=4).map(tuple),
        option=st.integers(0, 30),
    )
    return st.lists(step, min_size=1, max_size=size)


@dataclass
class Request:
    """One request in the model, its twin, and how far it is."""

    prompt: tuple[Item, ...]
    model: Any
    twin: Any
    prefilled: bool = False


def drive(
    steps: Sequence[Step],
    *,
    start: Callable[[tuple[Item, ...], Step], tuple[Any, Any]],
    prefilled: Callable[[Request], None],
    finish: Callable[[Request, tuple[Item, ...]], None],
    abandon: Callable[[Request], None],
) -> None:
    """Do the steps: "start" a request, let one "go on" (first token, then end), "give up" one, "serve" one whole."""
    known: list[tuple[Item, ...]] = [()]
    running: list[Request] = []

    def begin(step: Step) -> Request:
        prompt = (*known[step.which % len(known)][: step.keep], *step.more)
        return Request(prompt, *start(prompt, step))

    def end(request: Request, output: tuple[Item, ...]) -> None:
        finish(request, output)
        known.append((*request.prompt, *output))

    for step in steps:
        if step.action in ("start", "serve"):
            request = begin(step)
            if step.action == "start":
                running.append(request)
            else:
                prefilled(request)
                end(request, step.more)
        elif running:
            request = running[step.which % len(running)]
            if step.action == "give up":
                running.remove(request)
                abandon(request)
            elif request.prefilled:
                running.remove(request)
                end(request, step.more)
            else:
                request.prefilled = True
                prefilled(request)
