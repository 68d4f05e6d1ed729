"""What a step of the real tiny llama.cpp server takes on one thread: the coefficients of the simulator's preset `cpu`.

    python tests/bench/step_time.py            # a minute or two; the machine should be quiet

Prompts of several lengths are computed behind contexts of several lengths, answers are given to one and to several
requests at once, and the server's own timings are fitted by a step's cost (`harness.sim.hardware`): of each point the
fastest of some repetitions, and the sum of squared relative errors made as small as it gets with coefficients that
are not negative.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import requests

from harness.embedded.options import LlamaCppOptions
from harness.embedded.server import running_server
from harness.sim.hardware import PRESETS

VOCABULARY = range(300, 1500)
"""Token ids of words."""
CONTEXTS = (0, 1000, 4000, 8000)
CHUNKS = (1, 8, 64, 256, 1024, 2000)
SLOTS = 4
ANSWER_TOKENS = 24


@dataclass(frozen=True)
class Point:
    """A step: what it computed, and how long it took."""

    new_tokens: int
    context_tokens: int
    pairs: int
    seconds: float

    @property
    def row(self) -> tuple[int, int, int, int]:
        return 1, self.new_tokens, self.context_tokens, self.pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    repetitions = parser.parse_args().repetitions
    options = LlamaCppOptions(context_tokens=SLOTS * 12288, slots=SLOTS, cache_ram_mib=0, threads=1)
    with running_server(options) as server:
        url = server.url.removesuffix("/v1") + "/completion"
        prompts = list(prompt_points(url, repetitions))
        answers = list(answer_points(url, repetitions))
    found = fitted([*prompts, *answers])
    cost = PRESETS["cpu"].cost
    preset = (cost.step_s, cost.new_token_s, cost.context_token_s, cost.attention_s)
    print("new tokens  context  measured ms  fitted  preset")
    for point in [*prompts, *answers]:
        fit, simulated = (1000 * float(np.dot(point.row, one)) for one in (found, preset))
        measured = 1000 * point.seconds
        print(f"{point.new_tokens:10} {point.context_tokens:8} {measured:12.2f} {fit:7.2f} {simulated:7.2f}")
    for name, value, of_preset in zip(("step", "new token", "context token", "pair"), found, preset, strict=True):
        print(f"{name:14} {value:.3e} s (preset {of_preset:.3e} s)")


def prompt_points(url: str, repetitions: int) -> Iterator[Point]:
    """One step each: chunks behind a context that is in the slot already."""
    for context in CONTEXTS:
        held = random.choices(VOCABULARY, k=context)
        if held:
            ask(url, held, slot=0)
        for chunk in CHUNKS:
            seconds = []
            for _ in range(repetitions):
                # The slot gives up the chunk before, and keeps what it holds of the context.
                timings = ask(url, [*held, *random.choices(VOCABULARY, k=chunk)], slot=0)["timings"]
                seconds.append((timings["prompt_ms"] / 1000, timings["prompt_n"], timings["cache_n"]))
            best, new, cached = min(seconds)
            yield Point(new, cached, new * cached + new * (new + 1) // 2, best)


def answer_points(url: str, repetitions: int) -> Iterator[Point]:
    """Steps of answers, to one and to several requests at once: the mean over each answer."""
    for context in CONTEXTS[1:]:
        for count in (1, SLOTS):
            prompts = [random.choices(VOCABULARY, k=context) for _ in range(count)]
            for slot, prompt in enumerate(prompts):
                ask(url, prompt, slot)
            seconds = []
            for _ in range(repetitions):
                with ThreadPoolExecutor(count) as pool:
                    answers = list(pool.map(partial(ask, url, output_tokens=ANSWER_TOKENS), prompts, range(count)))
                seconds.append(max(answer["timings"]["predicted_per_token_ms"] for answer in answers) / 1000)
            read = count * (context + ANSWER_TOKENS // 2)
            yield Point(count, read, read + count, min(seconds))


def ask(url: str, prompt: Sequence[int], slot: int, output_tokens: int = 1) -> Any:
    asked: dict[str, Any] = {
        "prompt": prompt,
        "n_predict": output_tokens,
        "id_slot": slot,
        "ignore_eos": True,
        "temperature": 0,
    }
    response = requests.post(url, json=asked, timeout=300)
    response.raise_for_status()
    return response.json()


def fitted(points: Sequence[Point]) -> npt.NDArray[np.float64]:
    """Least squares of relative errors; what would be negative is 0 and the rest fitted again."""
    seconds = np.array([point.seconds for point in points])
    rows = np.array([point.row for point in points], dtype=np.float64) / seconds[:, None]
    used = list(range(rows.shape[1]))
    while True:
        found = np.zeros(rows.shape[1])
        found[used] = np.linalg.lstsq(rows[:, used], np.ones(len(points)), rcond=None)[0]
        if (found >= 0).all():
            return found
        used.remove(int(found.argmin()))


if __name__ == "__main__":
    main()
