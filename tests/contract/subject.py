"""The engine under test: its server, the adapter that was found for it, and prompts whose tokens are known."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import gevent
from tokenizers import Tokenizer

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.collector import Collector, Row, open_collector, value
from harness.embedded.engine_options import EngineOptions, MlxLmOptions, SglangOptions, VllmOptions
from harness.embedded.hugging_face import tokenizer_json
from harness.embedded.options import LlamaCppOptions
from harness.embedded.server import RunningServer
from harness.embedded.tiny_tokenizer import train
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target
from harness.sim.options import SimOptions
from harness.workload.words import CANDIDATES

REAL = ("llama-cpp", "mlx-lm", "vllm", "sglang")
SIMULATED = "sim-"
"""Stands before the name of a real engine for the one that is simulated in its manner."""
ENGINES = (*REAL, *(f"{SIMULATED}{engine}" for engine in REAL))
KV_TOKENS, CONTEXT_TOKENS, SLOTS, ENTRIES = 4096, 2048, 2, 4
"""So small that a few prompts fill the cache."""
PROMPT_WORDS = 500
FILLING_PROMPTS = {"llama-cpp": SLOTS, "mlx-lm": ENTRIES, "vllm": 9, "sglang": 9}
"""How many prompts of that length fill the cache."""
CHANCE_TOKENS = 16
"""What a cold prompt may hit: the head of the chat template, the opener, first words that are the same by chance."""


def options(engine: str, folder: Path, caching: bool = True) -> LlamaCppOptions | EngineOptions | SimOptions:
    """How the server of these tests is started; `folder` is for what it saves."""
    if engine.startswith(SIMULATED):
        return SimOptions.from_json(
            json.dumps(
                {
                    "manner": engine.removeprefix(SIMULATED),
                    "preset": "cpu",
                    "kv_tokens": KV_TOKENS,
                    "context_tokens": CONTEXT_TOKENS,
                    "page_tokens": 32 if engine == "sim-vllm" else None,
                    "slots": SLOTS,
                    "entries": ENTRIES if caching else 0,
                    "prefix_caching": caching,
                    "slot_save_path": str(folder) if engine == "sim-llama-cpp" else None,
                }
            )
        )
    if engine == "llama-cpp":
        return LlamaCppOptions(
            context_tokens=KV_TOKENS, slots=SLOTS, cache_ram_mib=0, slot_save_path=folder, cache_prompt=caching
        )
    if engine == "mlx-lm":
        return MlxLmOptions(cache_entries=ENTRIES if caching else 0)
    kind = {"vllm": VllmOptions, "sglang": SglangOptions}[engine]
    return kind(kv_tokens=KV_TOKENS, context_tokens=CONTEXT_TOKENS, prefix_caching=caching)


@cache
def tokenizer() -> Tokenizer:
    """That of the tiny model, by the tokenizers library."""
    return Tokenizer.from_str(json.dumps(tokenizer_json(train(CANDIDATES))))


def token_ids(text: str) -> list[int]:
    ids: list[int] = tokenizer().encode(text, add_special_tokens=False).ids
    return ids


@dataclass(frozen=True)
class Prompt:
    """A chat of a long system message, a question, and in turns answers and questions."""

    contents: tuple[str, ...]

    @property
    def messages(self) -> list[dict[str, str]]:
        roles = itertools.chain(["system"], itertools.cycle(["user", "assistant"]))
        return [{"role": role, "content": content} for role, content in zip(roles, self.contents, strict=False)]

    @cached_property
    def ids(self) -> list[int]:
        """Its token ids, by the tokenizers library and the template written out: no engine has a part in it."""
        rendered = "".join(f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in self.messages)
        return token_ids(f"{rendered}<|im_start|>assistant\n")

    def asking(self, question: str) -> Prompt:
        """Another question in the place of the last one."""
        return Prompt((*self.contents[:-1], question))

    def then(self, answer: str, question: str) -> Prompt:
        """The chat goes on."""
        return Prompt((*self.contents, answer, question))


def fresh_prompt(words: int = PROMPT_WORDS) -> Prompt:
    """One that begins as no other does."""
    number = next(_numbers)
    first = CANDIDATES[number]
    rest = random.Random(number).choices(CANDIDATES, k=words - 1)
    return Prompt(("# " + " ".join([first, *rest]), "# what then"))


def shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Tokens of the common prefix."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


@dataclass
class Subject:
    """One engine with its server."""

    name: str
    """Of the real engine, also where its manner is simulated."""
    options: LlamaCppOptions | EngineOptions | SimOptions
    server: RunningServer
    target: Target
    engine: OpenAIEngine
    rows: list[Row] = field(default_factory=list)

    @cached_property
    def collector(self) -> Collector:
        return open_collector(self.target, self.rows.extend)

    @property
    def granularity_tokens(self) -> int:
        """As it was started."""
        return getattr(self.options, "page_tokens", None) or 1

    @property
    def has_counters(self) -> bool:
        return bool(self.engine.metrics)

    def hit(self, shared_tokens: int, prompt_tokens: int) -> int:
        """Cached tokens by the rule that all four follow: whole blocks, and never the last token."""
        return min(shared_tokens, prompt_tokens - 1) // self.granularity_tokens * self.granularity_tokens

    def counts(self) -> dict[str, int]:
        """Prompt, cached and generated tokens by the engine's own counters, when they have come to rest."""
        assert self.collector.settle("periodic", self.engine.is_idle), self.collector.reason
        read = {metric.meaning: value(metric, self.collector.samples) for metric in self.engine.metrics}
        counted = {str(meaning): int(number) for meaning, number in read.items() if number is not None}
        if "prompt_tokens" not in counted:
            counted["prompt_tokens"] = counted["computed_prompt_tokens"] + counted["cached_prompt_tokens"]
        return {name: counted[name] for name in ("prompt_tokens", "cached_prompt_tokens", "generated_tokens")}

    def ask(self, prompt: Prompt, output_tokens: int = 4, cache_salt: str | None = None) -> Reply:
        return self.send(self.engine.chat_payload(prompt.messages, output_tokens, cache_salt=cache_salt))

    def ask_ids(self, ids: Sequence[int], output_tokens: int = 4) -> Reply:
        return self.send(self.engine.ids_payload(ids, output_tokens), "/completions")

    def send(self, payload: Mapping[str, Any], path: str = "/chat/completions") -> Reply:
        client = TimedClient(self.target, self.engine.read_event)
        try:
            return client.post(path, payload, self.engine.request_headers, _ignore)
        finally:
            client.close()

    @contextmanager
    def running_request(self, prompt: Prompt, output_tokens: int) -> Iterator[gevent.Greenlet]:
        """A request whose client hangs up at the end of the block; then the greenlet's value is its `Reply`."""
        client = TimedClient(self.target, self.engine.read_event)
        payload = self.engine.chat_payload(prompt.messages, output_tokens)
        sending = gevent.spawn(client.post, "/chat/completions", payload, self.engine.request_headers, _ignore)
        try:
            yield sending
        finally:
            client.cancel()
            sending.join()


def _ignore(_: Reply) -> None:
    pass


_numbers = itertools.count()
