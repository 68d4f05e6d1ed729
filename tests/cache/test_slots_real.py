"""The model of llama.cpp's server against the real one: the same slot and the same hit, in each of many requests.

`KVSWARM_CACHE_REQUESTS=300` runs all settings with so many requests each, instead of three with a few.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pytest
import requests

from harness.embedded.server import RunningServer
from tests.cache.dialogues import Dialogues
from tests.cache.real_slots import VOCABULARY, Setting, body, items, together
from tests.embedded.dialogue import post
from tests.waiting import wait_until

ASKED_FOR = os.environ.get("KVSWARM_CACHE_REQUESTS")
REQUESTS = int(ASKED_FOR or "50")
FEW = [Setting(2, 0), Setting(2, 1), Setting(4, 1, kv_unified=True)]
APART = [Setting(slots, ram, seed=seed) for ram, slots, seed in product((0, 64, 1, -1), (1, 2, 4), (1, 2))]
UNIFIED = [
    Setting(4, ram, kv_unified=True, context_tokens=context_tokens, seed=seed)
    for (ram, context_tokens), seed in product(((0, 256), (64, 512), (1, 2048), (-1, 768)), (1, 2))
]
SETTINGS = [*APART, *UNIFIED] if ASKED_FOR else FEW


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_each_request_takes_the_slot_and_hits_what_the_model_says(
    llama_cpp_server: Callable[..., RunningServer], tmp_path: Path, setting: Setting
) -> None:
    server = llama_cpp_server(**setting.options, slot_save_path=tmp_path / "slots")
    all_three, dialogues = together(server, setting), Dialogues(setting.seed, VOCABULARY)
    chance = dialogues.random
    for _ in range(REQUESTS):
        slot = chance.randrange(setting.slots) if chance.random() < 0.1 else None
        prompt, caches = dialogues.next_prompt(), chance.random() > 0.03
        dialogues.heard(all_three.ask(prompt, chance.randint(1, 12), slot, caches))
    twin = all_three.twin
    print(f"{setting}: {twin.evicted} states evicted, {twin.loaded} loaded, {twin.purged} slots purged")
    assert all_three.measured == all_three.expected == all_three.by_twin
    assert sum(cached > 20 for _, cached in all_three.expected) > 5
    assert bool(twin.loaded) == (setting.cache_ram_mib != 0)
    assert bool(twin.evicted) == (setting.cache_ram_mib in (1, -1))


@pytest.mark.parametrize("kv_unified", [False, True])
def test_a_slot_that_works_is_left_alone(
    llama_cpp_server: Callable[..., RunningServer], tmp_path: Path, kv_unified: bool
) -> None:
    setting = Setting(3, 1, kv_unified, context_tokens=3 * 1024)
    server = llama_cpp_server(**setting.options, slot_save_path=tmp_path / "slots")
    all_three, dialogues = together(server, setting), Dialogues(setting.seed, VOCABULARY, sessions=5)
    for _ in range(2):
        with all_three.asking(dialogues.next_prompt(), output_tokens=800):
            for _ in range(8):
                dialogues.heard(all_three.ask(dialogues.next_prompt(), output_tokens=3))
    assert all_three.measured == all_three.expected == all_three.by_twin
    assert len({slot for slot, _ in all_three.expected}) == 3


def test_those_that_wait_are_served_in_the_servers_order(
    llama_cpp_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    """The first two fill both slots until they are given up. When one is, two get its slot in turn; then it is the turn
    of one that waits for the other slot by name, so the last one has to wait, too."""
    setting = Setting(2, 0, context_tokens=2 * 32768)
    server = llama_cpp_server(**setting.options, slot_save_path=tmp_path / "slots")
    model, prompts = together(server, setting).model, [tuple(VOCABULARY[start : start + 60]) for start in (0, 60, 120)]
    first, second, third = prompts
    waiting = [(third, None), (third + first, None), (second, 0), (third, None)]
    admissions = [model.admit(items(prompt)) for prompt in (first, second)]
    admissions += [model.admit(items(prompt), slot=slot) for prompt, slot in waiting]
    with ExitStack() as endless, ThreadPoolExecutor(len(waiting)) as pool:
        held = [endless.enter_context(without_end(server, prompt)) for prompt in (first, second)]
        answers = []
        for prompt, slot in waiting:
            answers.append(pool.submit(post, server, "/completion", body(prompt, 3, slot, True)))
            wait_until(lambda: requests_at(server) == len(held) + len(answers))
        held[0].close()
        wait([answers[0], answers[1]])
        assert [answer.done() for answer in answers] == [True, True, False, False]
        held[1].close()
        wait(answers)
    said = [(), (), *(answer.result()["tokens"] for answer in answers)]
    for number in (0, 2, 3, 1, 4):
        model.prefilled(admissions[number])
        model.finish(admissions[number], items(said[number]))
    measured = [(answer.result()["id_slot"], answer.result()["timings"]["cache_n"]) for answer in answers]
    assert measured == [(one.slot, one.cached_tokens) for one in admissions[2:]]
    assert measured == [(1, 0), (1, 60), (0, 59), (1, 59)]


def without_end(server: RunningServer, prompt: Sequence[int]) -> requests.Response:
    """A request that fills a slot until its connection is closed; its first token is there."""
    asked = body(prompt, -1, None, True) | {"stream": True, "ignore_eos": True}
    response = requests.post(server.url.removesuffix("/v1") + "/completion", json=asked, stream=True, timeout=60)
    assert response.raw.read(1)
    return response


def requests_at(server: RunningServer) -> int:
    """How many the server works on or lets wait."""
    page = requests.get(server.url.removesuffix("/v1") + "/metrics", timeout=10).text
    return sum(int(number) for number in re.findall(r"^llamacpp:requests_\w+ (\d+)$", page, re.MULTILINE))
