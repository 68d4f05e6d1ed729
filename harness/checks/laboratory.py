"""A target under examination: prompts of known length, sent one after the other, each answer recorded as of any run."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from harness.checks.counter import cached_counter
from harness.checks.lexicon import learnt
from harness.checks.prompts import SCENARIO
from harness.checks.recording import Recording
from harness.checks.sender import Answer, Sender, Sent
from harness.client.row import Asked, Labels, request_row
from harness.client.timed import TimedClient
from harness.engines.base import Identity
from harness.engines.detect import connect, identify
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target, resolve_targets
from harness.errors import InputError, TargetError
from harness.workload.content import content_id
from harness.workload.lexicon import Lexicon
from harness.workload.session import Message, Segment

MOST_FAILURES = 3
"""Requests in a row that may fail before a check gives up."""
ALONE = -1
"""The worker number of rows that no worker sent."""

Phase = Literal["warmup", "measure"]


class Unanswered(TargetError):
    """Request after request failed; what came before is recorded."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check ends with."""

    verdict: str
    """One of the check's own words."""
    exit_code: int
    """0: shown; 1: not shown; 2: could not tell."""
    sentence: str
    """The verdict in words, with numbers and what to do."""
    numbers: Mapping[str, Any]
    """Plain values for scripts and the lab notebook."""


class Laboratory:
    """Made by `opened`. Prompts are sent in the order of the calls, never two at once."""

    def __init__(
        self, engine: OpenAIEngine, identity: Identity, lexicon: Lexicon, recording: Recording, nonce: str
    ) -> None:
        self.engine = engine
        """`takes_cache_salt`, `takes_token_ids`, `pins_slots`, `advice`: see `harness.engines.base.Engine`."""
        self.identity = identity
        """What the engine tells of itself: `capacity_tokens`, `granularity_tokens`, `slots`, `context_tokens`, ..."""
        self.lexicon = lexicon
        self._recording = recording
        self._nonce = nonce
        self._client = TimedClient(engine.target, engine.read_event)
        self._sender = Sender(
            self._client,
            engine,
            lexicon,
            SCENARIO,
            nonce,
            cached_counter(recording.collector, engine, self.note),
            self._keep,
        )
        self._phase: Phase = "measure"
        self._places: Counter[int] = Counter()
        self._group, self._number, self._failures = 0, 0, 0

    @property
    def target(self) -> Target:
        return self.engine.target

    @property
    def run_id(self) -> str:
        return self._recording.run_id

    @property
    def folder(self) -> str:
        """The run's directory, as `kvswarm report` takes it."""
        return self._recording.url

    # --- prompts -------------------------------------------------------------------------------

    @property
    def around_tokens(self) -> int:
        """Tokens of the chat template around the text of one user message, its first character included."""
        return self.lexicon.template.tokens([Message("user", ())])

    @property
    def head_tokens(self) -> int:
        """Tokens before the first word of any prompt: what every chat shares with every other.

        Where the template could only be counted, all of it may stand there.
        """
        template = self.lexicon.template
        unplaced = 0 if template.head_known else template.tail["user"]
        return template.head["user"] + template.opener_tokens + unplaced

    def prompt(self, *parts: tuple[str, int]) -> tuple[Message, ...]:
        """One user message of the named texts end to end, each of so many tokens; the template's come on top.

        A name has the same text in all prompts of this laboratory (of fewer tokens: its beginning), and nobody ever
        sent it before. Two names part in their first word or, the words being few, soon after by chance: see
        `harness.checks.prompts.CHANCE_WORDS`. A part of 0 tokens is left out.
        """
        segments = [Segment("user", self.content_id(name), tokens) for name, tokens in parts if tokens]
        return (Message("user", tuple(segments)),)

    def content_id(self, name: str) -> int:
        """The id of the text that `name` stands for."""
        return content_id(self._nonce, name)

    def tokens(self, messages: Sequence[Message]) -> list[int] | None:
        """A prompt as token ids; None if the engine does not show them."""
        return self._sender.tokens(messages)

    # --- sending -------------------------------------------------------------------------------

    def group(self, number: int) -> None:
        """Requests from now on are of this session: one a prefix, a trial or a tenant. The first in it is cold."""
        self._group = number

    @contextmanager
    def warming(self) -> Iterator[None]:
        """Requests in the block, which comes first, are of the phase warmup, which no result comes from."""
        self._phase = "warmup"
        try:
            yield
        finally:
            self._phase = "measure"
        self._recording.begin_measuring()

    def chat(
        self,
        name: str,
        messages: Sequence[Message],
        output_tokens: int = 1,
        *,
        cache_salt: str | None = None,
        slot: int | None = None,
        counted: bool = True,
    ) -> Answer:
        """Send a chat and wait for its answer; `name` is what the check calls it, and need not be new.

        A request that fails is recorded and returned (`Answer.is_ok`): it may have left its prompt in the cache.
        `counted`: also read the engine's counter, which takes some tenths of a second; leave it out for fillers.
        Raises Unanswered if `MOST_FAILURES` in a row have failed; ValueError for a salt or slot that the engine does
        not take.
        """
        answer = self._sender.chat(
            self._numbered(name), messages, output_tokens, cache_salt=cache_salt, slot=slot, counted=counted
        )
        return self._checked(answer)

    def ids(
        self,
        name: str,
        ids: Sequence[int],
        messages: Sequence[Message],
        output_tokens: int = 1,
        *,
        cache_salt: str | None = None,
        slot: int | None = None,
        counted: bool = True,
    ) -> Answer:
        """Send token ids, those of `messages`, past the chat template; else as `chat`."""
        answer = self._sender.ids(
            self._numbered(name), ids, messages, output_tokens, cache_salt=cache_salt, slot=slot, counted=counted
        )
        return self._checked(answer)

    def note(self, sentence: str) -> None:
        """Keep a sentence for run.json's notes."""
        self._recording.manifest.notes.append(sentence)

    @property
    def notes(self) -> list[str]:
        """All notes so far, those of the lexicon first."""
        return list(self._recording.manifest.notes)

    def restarts(self) -> str:
        """What its metrics pages, read once more, tell of restarts so far, as a sentence; empty: none was noticed."""
        collector = self._recording.collector
        if collector.available:
            collector.scrape_now("periodic")
        words = "; ".join(str(restart) for restart in collector.restarts)
        return f"{words[:1].upper()}{words[1:]}." if words else ""

    def restarted(self) -> Finding | None:
        """What a check ends with that asks for what the target held, if it was started again in the middle."""
        words = self.restarts()
        sentence = f"{words} What it held before is gone, so nothing can be said: try it again."
        return Finding("restarted", 2, sentence, {}) if words else None

    def _numbered(self, name: str) -> str:
        self._number += 1
        return f"{self._number}-{name}"

    def _checked(self, answer: Answer) -> Answer:
        self._failures = 0 if answer.is_ok else self._failures + 1
        if self._failures >= MOST_FAILURES:
            raise Unanswered(
                f"{self._failures} requests in a row to {self.target.url} failed, the last one so "
                f"({answer.reply.status}): {answer.reply.error}. What came before is in {self.folder}."
            )
        return answer

    def _keep(self, sent: Sent) -> None:
        is_measured = self._phase == "measure"
        labels = Labels(
            run_id=self.run_id,
            target=self.target.name,
            target_number=0,
            engine=self.identity.engine,
            model=self.identity.model,
            scenario=self._recording.manifest.scenario_name,
            kind=SCENARIO.kind,
            phase=self._phase,
            worker=ALONE,
            cache_salt=sent.cache_salt,
        )
        asked = Asked(
            sent.request_id,
            sent.due_ns,
            sent.due_ns,
            sent.path,
            sent.output_tokens,
            session=self._group if is_measured else None,
            turn=self._places[self._group] if is_measured else None,
            warmth=("warm" if self._places[self._group] else "cold") if is_measured else None,
            slot=sent.slot,
        )
        self._places[self._group] += is_measured
        self._recording.requests.add(request_row(labels, asked, sent.reply))

    def close(self) -> None:
        self._client.close()


@contextmanager
def opened(command: str, target: Target, results: str, options: Mapping[str, Any]) -> Iterator[Laboratory]:
    """A laboratory at `target`, with a run directory of its own below `results`.

    `command`: prove, evict or isolate; `options`: what it was called with, for run.json. At the end of the block, also
    by an exception or Ctrl-C, all that was measured is written and run.json says how it ended.
    Raises TargetError if the target cannot be reached or understood, InputError if the directory cannot be made.
    """
    engine = connect(target)
    identity = identify(engine)
    lexicon = learnt(engine)
    run_id = f"{time.strftime('%Y%m%d-%H%M%S')}-{command}-{secrets.token_hex(2)}"
    recording = Recording(run_id, command, engine, identity, lexicon, results, options)
    laboratory: Laboratory | None = None
    try:
        with recording:
            laboratory = Laboratory(engine, identity, lexicon, recording, f"{run_id}-{secrets.token_hex(4)}")
            yield laboratory
    finally:
        if laboratory is not None:
            laboratory.close()


def targets_of(names: Sequence[str], model: str = "") -> list[Target]:
    """The targets that are named as for a run, one each. Raises InputError, TargetError."""
    targets = []
    for name in names:
        found = resolve_targets(name)
        if len(found) > 1:
            raise InputError(f"{name} names {len(found)} targets; a check looks at one")
        targets.append(found[0].model_copy(update={"model": model}) if model else found[0])
    return targets
