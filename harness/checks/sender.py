"""Sends prompts one after the other, and reads what the engine counted of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.checks.counter import CountNow
from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.engines.openai import OpenAIEngine
from harness.workload.lexicon import Lexicon
from harness.workload.scenario import Scenario
from harness.workload.session import Message, Segment
from harness.workload.text import Renderer

CHAT, IDS = "/chat/completions", "/completions"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request, for its row; also one that failed."""

    name: str
    """What the check calls it."""
    request_id: str
    due_ns: int
    path: list[Segment]
    """All that its prompt consists of."""
    output_tokens: int
    """What was asked for."""
    reply: Reply
    cache_salt: str | None = None
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back of a request, and what the engine counted of it."""

    sent: Sent
    counter_cached_tokens: int | None
    """How much the engine's own counter of cached tokens rose around it; None: not known."""

    @property
    def reply(self) -> Reply:
        return self.sent.reply

    @property
    def is_ok(self) -> bool:
        return self.reply.status == "ok"

    @property
    def planned_tokens(self) -> int:
        """Length of the prompt as planned, template included."""
        return sum(segment.tokens for segment in self.sent.path)

    @property
    def prompt_tokens(self) -> int:
        """Length as the engine counted, else as planned."""
        return self.planned_tokens if self.reply.prompt_tokens is None else self.reply.prompt_tokens

    @property
    def usage_cached_tokens(self) -> int | None:
        """As the answer reports; None: it does not."""
        return self.reply.cached_tokens

    @property
    def cached_tokens(self) -> int | None:
        """By the answer, else by the counter, else None: not known, which is not 0."""
        return self.counter_cached_tokens if self.usage_cached_tokens is None else self.usage_cached_tokens

    @property
    def ttft_ms(self) -> float | None:
        return self.reply.ttft_ms


class Sender:
    """One connection to a target. The engine's counter is read between requests, so nobody else may use the target."""

    def __init__(
        self,
        client: TimedClient,
        engine: OpenAIEngine,
        lexicon: Lexicon,
        scenario: Scenario,
        label: str,
        count_now: CountNow,
        record: Callable[[Sent], None],
    ) -> None:
        """`scenario`: what the lexicon was learnt for; `label` begins each request's id; `record` is called once for
        each request."""
        self._client = client
        self._engine = engine
        self._renderer = Renderer(lexicon, scenario)
        self._label = label
        self._count_now = count_now
        self._record = record
        self._counted: int | None = 0
        self._is_stale = True  # it is read when it is first asked for

    def chat(
        self,
        name: str,
        messages: Sequence[Message],
        output_tokens: int,
        *,
        cache_salt: str | None = None,
        slot: int | None = None,
        counted: bool = True,
    ) -> Answer:
        """Send a chat. A request that fails raises nothing: see `Answer.is_ok`.

        `counted`: read the engine's counter after it, which takes some tenths of a second.
        Raises ValueError for a salt or slot that the engine does not take.
        """
        chat = self._renderer.chat(messages)
        payload = self._engine.chat_payload(chat, output_tokens, cache_salt=cache_salt, slot=slot)
        return self._send(name, CHAT, payload, messages, output_tokens, cache_salt, slot, counted)

    def tokens(self, messages: Sequence[Message]) -> list[int] | None:
        """The prompt of a chat as token ids; None if the engine does not show them."""
        return self._engine.chat_tokens(self._renderer.chat(messages))

    def ids(
        self,
        name: str,
        ids: Sequence[int],
        messages: Sequence[Message],
        output_tokens: int,
        *,
        cache_salt: str | None = None,
        slot: int | None = None,
        counted: bool = True,
    ) -> Answer:
        """Send `ids`, which are the tokens of `messages`; else as `chat`."""
        payload = self._engine.ids_payload(ids, output_tokens, cache_salt=cache_salt, slot=slot)
        return self._send(name, IDS, payload, messages, output_tokens, cache_salt, slot, counted)

    def _send(
        self,
        name: str,
        path: str,
        payload: Mapping[str, Any],
        messages: Sequence[Message],
        output_tokens: int,
        cache_salt: str | None,
        slot: int | None,
        counted: bool,
    ) -> Answer:
        if counted and self._is_stale:
            self._count_since()
        request_id, due_ns = f"{self._label}-{name}", time.time_ns()
        sent: list[Sent] = []

        def on_reply(reply: Reply) -> None:
            parts = self._renderer.path(messages)
            sent.append(Sent(name, request_id, due_ns, parts, output_tokens, reply, cache_salt, slot))
            self._record(sent[0])

        headers = {"X-Request-Id": request_id, **self._engine.request_headers}
        self._client.post(path, payload, headers, on_reply)
        self._is_stale = not counted
        # A request that failed in the middle may have been counted, or not yet: nothing is known of it.
        is_known = counted and sent[0].reply.status == "ok"
        if counted and not is_known:
            self._is_stale = True
        return Answer(sent[0], self._count_since() if is_known else None)

    def _count_since(self) -> int | None:
        """Cached tokens counted since this was last asked. Once the count is not known, it is not asked for again."""
        before = self._counted
        if before is None:
            return None
        self._counted = self._count_now()
        self._is_stale = False
        # A count that fell is of a server that was started again.
        return None if self._counted is None or self._counted < before else self._counted - before
