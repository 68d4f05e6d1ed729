"""What lint claims of two prompts, measured: both are sent as they are, then as they would be rearranged."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.checks.prediction import cached_tokens
from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.engines.detect import connect, identify
from harness.engines.openai import OpenAIEngine
from harness.engines.target import resolve_targets
from harness.errors import InputError, TargetError
from harness.lint.finding import Lint
from harness.lint.reading import Log
from harness.lint.segments import PROMPT, TOOLS, ChatPrompt, Segments
from harness.lint.tokens import Tokens, by_text, common_tokens, packed

CHAT = "/chat/completions"
OUTPUT_TOKENS = 1
MOST_PAIRS = 3


@dataclass(frozen=True, slots=True)
class Sent:
    """One request that was sent."""

    source: str
    """What the log calls it."""
    is_rearranged: bool
    prompt_tokens: int | None
    """As the engine counted; None: it does not say."""
    claimed_tokens: int | None
    """What it should hit by what was sent before it; None: nothing is claimed of it, as it is the first of its pair."""
    cached_tokens: int | None
    """What it did hit, as the engine reports it; None: it does not."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A pair of prompts: as they are, then rearranged."""

    requests: Sequence[Sent]
    """Earlier, later, earlier rearranged, later rearranged."""


def connected(target: str, model: str = "") -> OpenAIEngine:
    """The adapter for the one target that is named as for a run. Raises InputError, TargetError."""
    targets = resolve_targets(target)
    if len(targets) > 1:
        raise InputError(f"--target names {len(targets)} targets; lint measures at one")
    return connect(targets[0].model_copy(update={"model": model}) if model else targets[0])


def tokens_of(engine: OpenAIEngine, tokenizer: Path | None = None) -> Tokens:
    """Prompts as the target itself makes tokens of them, template included.

    If it shows no tokens, as by a tokenizer.json, or estimated. Raises InputError; `Tokens.stream` raises TargetError
    for a chat that the target does not take.
    """
    if engine.chat_tokens([{"role": "user", "content": "#"}]) is None:
        fallback = by_text(tokenizer)
        return replace(fallback, how=f"{engine.target.name} does not show its tokens. {fallback.how}")
    known: dict[Segments, bytes] = {}

    def stream(prompt: ChatPrompt) -> bytes:
        if prompt.segments not in known:
            body = _chat(prompt)
            ids = engine.chat_tokens(body["messages"], body.get(TOOLS) or ())
            if ids is None:
                end = prompt.segments[-1].text[-40:]
                raise TargetError(
                    f"{engine.target.name} does not tokenise the chat that ends with {end!r}: "
                    "its template may not take such messages; leave out --target to look at the prompts alone"
                )
            known[prompt.segments] = packed(ids)
        return known[prompt.segments]

    return Tokens(stream, f"Tokens are those of {engine.target.name}, chat template included.")


def measure(engine: OpenAIEngine, log: Log, lint: Lint, tokens: Tokens) -> list[Measured]:
    """Send the worst pair of each kind that was found, `MOST_PAIRS` pairs at most.

    So that only these requests share a cache, they have a cache salt of their own, or where the engine takes none, a
    mark at the beginning of their first message. Raises TargetError if a request fails.
    """
    prompts = [request.prompt for request in log.requests]
    rearranged = lint.remedies.arrange(prompts, [one.kind for one in lint.kinds])
    worst = {problem.worst.kind: problem.worst for problem in reversed(lint.problems)}
    pairs = list(dict.fromkeys((worst[one.kind].earlier, worst[one.kind].request) for one in lint.kinds))[:MOST_PAIRS]
    granularity_tokens = identify(engine).granularity_tokens or 1
    client = TimedClient(engine.target, engine.read_event)
    try:
        return [
            _measured(
                _Sender(client, engine, tokens, granularity_tokens),
                [(log.requests[number].source, prompts[number], rearranged[number]) for number in pair],
            )
            for pair in pairs
        ]
    finally:
        client.close()


class _Sender:
    """Sends prompts that share a cache with no others."""

    def __init__(self, client: TimedClient, engine: OpenAIEngine, tokens: Tokens, granularity_tokens: int) -> None:
        self._client, self._engine, self._tokens = client, engine, tokens
        self._granularity_tokens = granularity_tokens
        self._mark = secrets.token_hex(8)
        self._before: list[bytes] = []

    def send(self, source: str, prompt: ChatPrompt, is_rearranged: bool, is_claimed: bool) -> Sent:
        salt = f"lint-{self._mark}" if self._engine.takes_cache_salt else None
        if salt is None:
            prompt = _marked(prompt, f"({self._mark})\n")
        body = _chat(prompt)
        payload = self._engine.chat_payload(body["messages"], OUTPUT_TOKENS, cache_salt=salt)
        if body.get(TOOLS):
            payload[TOOLS] = body[TOOLS]
        reply = self._client.post(CHAT, payload, dict(self._engine.request_headers), _ignored)
        if reply.status != "ok":
            raise TargetError(
                f"{source} could not be sent to {self._engine.target.url} ({reply.status}): {reply.error}; "
                "leave out --target to look at the prompts alone"
            )
        stream = self._tokens.stream(prompt)
        shared = max((common_tokens(stream, other) for other in self._before), default=0)
        self._before.append(stream)
        claimed = cached_tokens(shared, self._tokens.count(prompt), self._granularity_tokens)
        return Sent(source, is_rearranged, reply.prompt_tokens, claimed if is_claimed else None, reply.cached_tokens)


def _measured(sender: _Sender, pair: Sequence[tuple[str, ChatPrompt, ChatPrompt]]) -> Measured:
    as_it_is = [sender.send(source, prompt, False, bool(number)) for number, (source, prompt, _) in enumerate(pair)]
    better = [sender.send(source, prompt, True, bool(number)) for number, (source, _, prompt) in enumerate(pair)]
    return Measured((*as_it_is, *better))


def _chat(prompt: ChatPrompt) -> dict[str, Any]:
    """The body of a chat; a prompt that is none is sent as a user's message."""
    body = prompt.to_body()
    return {"messages": [{"role": "user", "content": body[PROMPT]}]} if PROMPT in body else body


def _marked(prompt: ChatPrompt, mark: str) -> ChatPrompt:
    """With a mark at the beginning of the first text that is no tool."""
    number = next(number for number, segment in enumerate(prompt.segments) if segment.role != TOOLS)
    first = prompt.segments[number]
    marked = replace(first, text=mark + first.text)
    return prompt.arranged((*prompt.segments[:number], marked, *prompt.segments[number + 1 :]))


def _ignored(_: Reply) -> None:
    """Nothing is recorded: there is no run."""
