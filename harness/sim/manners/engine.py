"""What stands behind every manner: vocabulary, scheduler, driver."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from harness.sim.answers import Answers
from harness.sim.clock import ScaledClock
from harness.sim.driver import Clock, Driver, Hears
from harness.sim.generation import Generation
from harness.sim.options import SimOptions
from harness.sim.scheduler import Observer, Scheduler
from harness.sim.vocabulary import tiny_vocabulary


class Engine:
    """One simulated engine without its endpoints."""

    def __init__(
        self, options: SimOptions, observer: Observer, hears: Hears | None = None, clock: Clock | None = None
    ) -> None:
        """`clock`: None: the wall clock, scaled as the options say. Raises InputError for options of no engine."""
        self.options = options
        self.vocabulary = tiny_vocabulary()
        self.scheduler = Scheduler(options, observer, self.vocabulary.words)
        self.driver = Driver(self.scheduler, clock or ScaledClock(options.time_scale), hears)

    def answer_ahead(self, generation: Generation) -> Iterator[int]:
        """The tokens that it will get, as far as its greatest length."""
        answers = Answers(self.options.seed, self.vocabulary.words)
        return islice(answers.to(generation.prompt_ids), generation.max_tokens)
