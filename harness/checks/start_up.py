"""Sends the requests of the start-up check, one after the other, and judges what came back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.checks import wording
from harness.checks.counter import CountNow, cached_counter
from harness.checks.prediction import Observation
from harness.checks.prompts import OUTPUT_TOKENS, SCENARIO, Lengths, Prompt, choose_lengths, prompts
from harness.checks.verdict import Circumstances, falls_short, judge, needs_part
from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.collector import Collector
from harness.engines.base import Identity
from harness.engines.openai import OpenAIEngine
from harness.errors import TargetError
from harness.record.manifest import StartUpCheck
from harness.workload.lexicon import Lexicon
from harness.workload.session import Segment
from harness.workload.text import Renderer

CHAT, IDS = "/chat/completions", "/completions"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of the check, for its row; also one that failed."""

    name: str
    """As in `harness.record.manifest.Probe`."""
    request_id: str
    due_ns: int
    path: list[Segment]
    """All that its prompt consists of."""
    output_tokens: int
    """What was asked for."""
    reply: Reply


def check_start_up(
    client: TimedClient,
    engine: OpenAIEngine,
    identity: Identity,
    lexicon: Lexicon,
    label: str,
    collector: Collector,
    record: Callable[[Sent], None],
) -> StartUpCheck:
    """Send a cold, a repeated and a half-shared prompt, and say what they show of the target's cache.

    One or three more follow where those leave open how large its blocks are, or why a repeat was not hit. `label`
    begins each request's id, and makes texts that no other check sent. `record` is called once for each request.
    Raises TargetError if a request fails.
    """
    lengths = choose_lengths(lexicon, identity.context_tokens, identity.granularity_tokens)
    if lengths is None:
        return StartUpCheck(
            verdict="unclear",
            sentence=wording.no_room(identity.context_tokens or 0),
            granularity_tokens=None,
            probes=(),
        )
    sender = Sender(client, engine, lexicon, label, cached_counter(collector, engine), record)
    observed = _observe(sender, engine, identity.granularity_tokens, prompts(lexicon, label, lengths), lengths)
    verdict = judge(
        observed,
        Circumstances(
            granularity_tokens=identity.granularity_tokens,
            prefix_caching=identity.prefix_caching,
            replicas=max(1, len(engine.target.metrics_urls)),
            exact=lexicon.exact,
            advice=engine.advice,
        ),
    )
    return StartUpCheck(
        verdict=verdict.kind,
        sentence=verdict.sentence,
        granularity_tokens=verdict.granularity_tokens,
        probes=tuple(observation.probe(identity.granularity_tokens) for observation in observed),
    )


class Sender:
    """Sends prompts and reads what the engine counted of each."""

    def __init__(
        self,
        client: TimedClient,
        engine: OpenAIEngine,
        lexicon: Lexicon,
        label: str,
        count_now: CountNow,
        record: Callable[[Sent], None],
    ) -> None:
        self._client = client
        self._engine = engine
        self._template = lexicon.template
        self._renderer = Renderer(lexicon, SCENARIO)
        self._label = label
        self._count_now = count_now
        self._record = record
        self._counted = count_now()

    def chat(self, name: str, prompt: Prompt, lengths: Lengths) -> Observation:
        """Raises TargetError if the request fails."""
        payload = self._engine.chat_payload(self._renderer.chat(prompt.messages), OUTPUT_TOKENS)
        return self._send(name, CHAT, payload, prompt, lengths.prompt)

    def tokens(self, prompt: Prompt) -> list[int] | None:
        """The prompt as token ids; None if the engine does not show them."""
        return self._engine.chat_tokens(self._renderer.chat(prompt.messages))

    def ids(self, name: str, ids: list[int], prompt: Prompt) -> Observation:
        """Send `ids`, which are the tokens of `prompt`. Raises TargetError if the request fails."""
        return self._send(name, IDS, self._engine.ids_payload(ids, OUTPUT_TOKENS), prompt, len(ids))

    def _send(self, name: str, path: str, payload: Mapping[str, Any], prompt: Prompt, tokens: int) -> Observation:
        request_id, due_ns = f"{self._label}-{name}", time.time_ns()

        def on_reply(reply: Reply) -> None:
            parts = self._template.path(prompt.messages)
            self._record(Sent(name, request_id, due_ns, parts, OUTPUT_TOKENS, reply))

        headers = {"X-Request-Id": request_id, **self._engine.request_headers}
        reply = self._client.post(path, payload, headers, on_reply)
        if reply.status != "ok":
            raise TargetError(
                f"A request of the start-up check to {self._engine.target.url} failed ({reply.status}): {reply.error}. "
                "Nothing else was sent."
            )
        return Observation(
            name=name,
            planned_tokens=tokens,
            least_shared=prompt.least_shared,
            most_shared=prompt.most_shared,
            prompt_tokens=reply.prompt_tokens,
            usage_cached_tokens=reply.cached_tokens,
            counter_cached_tokens=self._count_since(),
            ttft_ms=reply.ttft_ms,
        )

    def _count_since(self) -> int | None:
        """Cached tokens counted since this was last asked. Once the count is not known, it is not asked for again."""
        before = self._counted
        if before is None:
            return None
        self._counted = self._count_now()
        return None if self._counted is None else self._counted - before


def _observe(
    sender: Sender, engine: OpenAIEngine, granularity_tokens: int | None, prompt: Mapping[str, Prompt], lengths: Lengths
) -> list[Observation]:
    observed = [sender.chat(name, prompt[name], lengths) for name in ("cold", "repeat", "half")]
    if falls_short(observed[1], granularity_tokens):
        ids = sender.tokens(prompt["ids"]) if engine.takes_token_ids else None
        if ids is not None:
            again = Prompt(prompt["ids"].messages, len(ids), len(ids))
            observed += [sender.ids("ids_cold", ids, prompt["ids"]), sender.ids("ids_repeat", ids, again)]
    elif needs_part(observed):
        observed.append(sender.chat("part", prompt["part"], lengths))
    return observed
