"""Sends the requests of the start-up check, one after the other, and judges what came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.checks import wording
from harness.checks.counter import cached_counter
from harness.checks.prediction import Observation
from harness.checks.prompts import OUTPUT_TOKENS, SCENARIO, Lengths, Prompt, choose_lengths, prompts
from harness.checks.sender import Answer, Sender, Sent
from harness.checks.verdict import Circumstances, falls_short, judge, needs_part
from harness.client.timed import TimedClient
from harness.collector import Collector
from harness.engines.base import Identity
from harness.engines.openai import OpenAIEngine
from harness.errors import TargetError
from harness.record.manifest import StartUpCheck
from harness.workload.lexicon import Lexicon


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
    sender = Sender(client, engine, lexicon, SCENARIO, label, cached_counter(collector, engine), record)
    asking = _Asking(sender, engine, lengths)
    observed = _observe(asking, engine, identity.granularity_tokens, prompts(lexicon, label, lengths))
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


class _Asking:
    """Sends the prompts of the check, each of which must be answered."""

    def __init__(self, sender: Sender, engine: OpenAIEngine, lengths: Lengths) -> None:
        self._sender = sender
        self._url = engine.target.url
        self._lengths = lengths

    def chat(self, name: str, prompt: Prompt) -> Observation:
        """Raises TargetError if the request fails."""
        return self._observation(self._sender.chat(name, prompt.messages, OUTPUT_TOKENS), prompt, self._lengths.prompt)

    def tokens(self, prompt: Prompt) -> list[int] | None:
        """The prompt as token ids; None if the engine does not show them."""
        return self._sender.tokens(prompt.messages)

    def ids(self, name: str, ids: list[int], prompt: Prompt) -> Observation:
        """Send `ids`, which are the tokens of `prompt`. Raises TargetError if the request fails."""
        return self._observation(self._sender.ids(name, ids, prompt.messages, OUTPUT_TOKENS), prompt, len(ids))

    def _observation(self, answer: Answer, prompt: Prompt, tokens: int) -> Observation:
        if not answer.is_ok:
            raise TargetError(
                f"A request of the start-up check to {self._url} failed ({answer.reply.status}): "
                f"{answer.reply.error}. Nothing else was sent."
            )
        return Observation(
            name=answer.sent.name,
            planned_tokens=tokens,
            least_shared=prompt.least_shared,
            most_shared=prompt.most_shared,
            prompt_tokens=answer.reply.prompt_tokens,
            usage_cached_tokens=answer.usage_cached_tokens,
            counter_cached_tokens=answer.counter_cached_tokens,
            ttft_ms=answer.ttft_ms,
        )


def _observe(
    sender: _Asking, engine: OpenAIEngine, granularity_tokens: int | None, prompt: Mapping[str, Prompt]
) -> list[Observation]:
    observed = [sender.chat(name, prompt[name]) for name in ("cold", "repeat", "half")]
    if falls_short(observed[1], granularity_tokens):
        ids = sender.tokens(prompt["ids"]) if engine.takes_token_ids else None
        if ids is not None:
            again = Prompt(prompt["ids"].messages, len(ids), len(ids))
            observed += [sender.ids("ids_cold", ids, prompt["ids"]), sender.ids("ids_repeat", ids, again)]
    elif needs_part(observed):
        observed.append(sender.chat("part", prompt["part"]))
    return observed
