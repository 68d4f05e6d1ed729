"""The model of each engine's cache against the real engine: the same hit, in each of many requests.

`KVSWARM_CACHE_REQUESTS=300` sends so many instead of a few.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.cache.base import CacheModel, serve
from harness.cache.block_pool import BlockPool
from harness.cache.entries import Entries
from harness.cache.radix import RadixTree
from harness.cache.slots import Slots
from harness.workload.words import CANDIDATES
from tests.contract.conftest import running_subject
from tests.contract.subject import ENTRIES, KV_TOKENS, SLOTS, Prompt, Subject, token_ids

REQUESTS = int(os.environ.get("KVSWARM_CACHE_REQUESTS", "60"))
LONGEST_TOKENS = 250
MODELS: Mapping[str, Callable[[int], CacheModel[Any]]] = {
    "llama-cpp": lambda _: Slots(SLOTS, KV_TOKENS),
    "mlx-lm": lambda _: Entries(ENTRIES),
    "vllm": lambda block_tokens: BlockPool(KV_TOKENS // block_tokens, block_tokens),
    "sglang": lambda page_tokens: RadixTree(KV_TOKENS, page_tokens),
}


@pytest.fixture
def untouched(engine_name: str, tmp_path: Path) -> Iterator[Subject]:
    """A server of the test's own, whose cache is empty."""
    with running_subject(engine_name, tmp_path) as subject:
        yield subject


class Chats:
    """Sessions that grow, are edited, cut, repeated and begun anew, half of them with one system message."""

    def __init__(self, seed: int, sessions: int = 6) -> None:
        self.random = random.Random(seed)
        self.shared_system = self.words(25)
        self.prompts: list[Prompt | None] = [None] * sessions
        self.answers = [""] * sessions
        self.current = 0

    def words(self, longest: int) -> str:
        return "# " + " ".join(self.random.choices(CANDIDATES, k=self.random.randint(2, longest)))

    def next_prompt(self) -> Prompt:
        self.current = self.random.randrange(len(self.prompts))
        sent, answer = self.prompts[self.current], self.answers[self.current]
        manner = self.random.choices(("grow", "edit", "cut", "new", "repeat"), weights=(60, 12, 8, 10, 10))[0]
        if sent is None or manner == "new" or len(sent.ids) > LONGEST_TOKENS:
            system = self.shared_system if self.current % 2 else self.words(25)
            prompt = Prompt((system, self.words(25)))
        elif manner == "grow" and answer:
            prompt = sent.then(answer, self.words(25))
        elif manner == "edit":
            place = self.random.randrange(len(sent.contents))
            prompt = Prompt((*sent.contents[:place], self.words(10), *sent.contents[place + 1 :]))
        elif manner == "cut":
            turns = self.random.randrange(len(sent.contents) // 2)
            prompt = Prompt((*sent.contents[: 1 + 2 * turns], self.words(10)))
        else:
            prompt = sent
        self.prompts[self.current], self.answers[self.current] = prompt, ""
        return prompt

    def heard(self, answer: str) -> None:
        self.answers[self.current] = answer


def items(ids: Sequence[int]) -> list[tuple[int, int]]:
    return [(token, 1) for token in ids]


def test_the_model_says_what_the_engine_reuses(untouched: Subject) -> None:
    chats, model = Chats(seed=1), MODELS[untouched.name](untouched.granularity_tokens)
    expected, measured = [], []
    for _ in range(REQUESTS):
        prompt = chats.next_prompt()
        reply = untouched.ask(prompt, output_tokens=chats.random.randint(1, 12))
        answer = token_ids(f" {reply.text.strip()}")
        assert (reply.status, reply.prompt_tokens, reply.output_tokens) == ("ok", len(prompt.ids), len(answer))
        chats.heard(reply.text)
        expected.append(serve(model, items(prompt.ids), items(answer)))
        measured.append(reply.cached_tokens)
    assert measured == expected
    assert len(set(expected)) > 5
