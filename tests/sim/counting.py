"""An engine's counters, kept by hand, and sessions on token ids."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from harness.sim.generation import Generation
from harness.sim.options import MannerName, SimOptions
from harness.sim.scheduler import Scheduler, Step

WORDS = range(1000, 1400)
LONGEST_TOKENS = 250


@dataclass
class Counters:
    """What a metrics page would count."""

    seen: Counter[str] = field(default_factory=Counter)

    def arrived(self, generation: Generation) -> None:
        self.seen["requests"] += 1

    def admitted(self, generation: Generation) -> None:
        assert generation.admitted_s is not None
        assert generation.cached_tokens is not None
        self.seen["prompt"] += len(generation.prompt_ids)
        self.seen["cached"] += generation.cached_tokens

    def first_token(self, generation: Generation) -> None:
        assert len(generation.output_ids) == 1
        self.seen["first tokens"] += 1

    def stepped(self, step: Step) -> None:
        self.seen["steps"] += 1
        self.seen["computed"] += step.prompt_tokens + step.decoding
        self.seen["cached in steps"] += step.cached_tokens

    def preempted(self, generation: Generation) -> None:
        self.seen["preemptions"] += 1

    def ended(self, generation: Generation) -> None:
        assert generation.end is not None
        assert generation.ended_s is not None
        self.seen[f"ended by {generation.end}"] += 1
        self.seen["output"] += len(generation.output_ids)


def engine(manner: MannerName, counters: Counters | None = None, **options: object) -> Scheduler:
    chosen = SimOptions(manner=manner, **options)  # type: ignore[arg-type]
    return Scheduler(chosen, counters or Counters(), WORDS)


def run(scheduler: Scheduler, now_s: float = 0.0, most_steps: int = 100_000) -> float:
    """Steps until nothing is to do; the time of that."""
    for _ in range(most_steps):
        step = scheduler.begin(now_s)
        if step is None:
            return now_s
        now_s = step.ended_s
        scheduler.complete(step)
    raise AssertionError(f"there is something to do after {most_steps} steps")


def ask(scheduler: Scheduler, prompt: Sequence[int], output_tokens: int = 4, **more: object) -> Generation:
    """One request that has the engine for itself."""
    generation = Generation(list(prompt), output_tokens, **more)  # type: ignore[arg-type]
    scheduler.submit(generation, 0.0)
    run(scheduler)
    return generation


class Sessions:
    """Sessions that grow, are edited, cut, repeated and begun anew, half of them with one system message."""

    def __init__(self, seed: int, sessions: int = 8) -> None:
        self.random = random.Random(seed)
        self.system = self.words(60)
        self.prompts: list[list[int]] = [[] for _ in range(sessions)]
        self.answers: list[list[int]] = [[] for _ in range(sessions)]

    def words(self, longest: int) -> list[int]:
        return self.random.choices(WORDS, k=self.random.randint(2, longest))

    def next_prompt(self, session: int) -> list[int]:
        sent, answer = self.prompts[session], self.answers[session]
        manner = self.random.choices(("grow", "edit", "cut", "new", "repeat"), weights=(60, 12, 8, 10, 10))[0]
        if not sent or manner == "new" or len(sent) > LONGEST_TOKENS:
            prompt = (self.system if session % 2 else self.words(60)) + self.words(25)
        elif manner == "grow" and answer:
            prompt = sent + answer + self.words(25)
        elif manner == "edit":
            place = self.random.randrange(len(sent))
            prompt = sent[:place] + self.words(10) + sent[place + 10 :]
        elif manner == "cut":
            prompt = sent[: self.random.randrange(1, len(sent) + 1)] + self.words(10)
        else:
            prompt = sent
        self.prompts[session], self.answers[session] = prompt, []
        return prompt

    def heard(self, session: int, answer: list[int]) -> None:
        self.answers[session] = answer

    def generations(self, requests: int, longest_answer: int = 12) -> Iterator[tuple[int, Generation]]:
        """Requests of any session, with its number; each is to be served before the next is drawn."""
        for _ in range(requests):
            session = self.random.randrange(len(self.prompts))
            yield session, Generation(self.next_prompt(session), self.random.randint(1, longest_answer))


def steps(scheduler: Scheduler, most: int = 1000) -> list[tuple[dict[int, int], list[int]]]:
    """What each step computes, until nothing is to do: tokens of prompts, and answers, by the prompts' first ids."""
    seen: list[tuple[dict[int, int], list[int]]] = []
    now_s = 0.0
    while len(seen) < most and (step := scheduler.begin(now_s)) is not None:
        prompts = {one.prompt_ids[0]: new for one, new in step.prefills}
        seen.append((prompts, [one.prompt_ids[0] for one in step.decodes]))
        now_s = step.ended_s
        scheduler.complete(step)
    return seen


def asked(first: int, prompt_tokens: int, output_tokens: int = 1, **more: object) -> Generation:
    """A request whose prompt begins with `first`, and shares nothing with those that begin otherwise."""
    prompt = [first, *range(100_000 * first, 100_000 * first + prompt_tokens - 1)]
    return Generation(prompt, output_tokens, **more)  # type: ignore[arg-type]
