"""The requests of the recorded runs of vLLM and SGLang, in their order.

Both servers were sent the same ones. Prompts here have as many tokens, and as many in common, as those had, so that all
counts and cache hits must come out the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

from harness.embedded.server import running_server
from harness.embedded.tiny_tokenizer import TURN_END
from harness.sim.answers import Answers
from harness.sim.options import MannerName, SimOptions
from harness.sim.vocabulary import tiny_vocabulary
from tests.contract.subject import Prompt, token_ids, tokenizer
from tests.sim.exchange import Response, ask
from tests.sim.sized import chat, words

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
PREFIXES = {"": (2060, 2045), "-2": (2142, 2127), "-3": (2095, 2080)}
"""Ending of a name -> tokens of the cold chat, and how many of them the warm one shares."""
FILLERS = (2204, 2080, 2069, 2040, 2161, 2118)
CONTEXT_TOKENS, KV_TOKENS, BLOCK_TOKENS = 4096, 10240, 32
"""What both servers were started with; SGLang's pages were of one token."""

Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Call:
    name: str
    path: str
    body: Any = None
    method: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def to(self, url: str) -> Response:
        return ask(url, self.path, self.body, self.method, **dict(self.headers))


@cache
def answers(engine: MannerName) -> dict[str, Response]:
    """What the simulated engine answers to all of them, by name."""
    return {**_answers(whole_run(engine), options(engine)), **_answers(uncached_run(), uncached_options(engine))}


def options(engine: MannerName) -> SimOptions:
    """As the real server was started, on another machine."""
    return SimOptions(
        manner=engine,
        kv_tokens=KV_TOKENS,
        context_tokens=CONTEXT_TOKENS,
        page_tokens=BLOCK_TOKENS if engine == "vllm" else 1,
        time_scale=20.0,
    )


def uncached_options(engine: MannerName) -> SimOptions:
    return replace(options(engine), prefix_caching=False, report_cached=False)


def _answers(calls: Iterable[Call], started_with: SimOptions) -> dict[str, Response]:
    with running_server(started_with) as server:
        return {call.name: call.to(server.url.removesuffix("/v1")) for call in calls}


def whole_run(engine: str) -> Iterator[Call]:
    """All but what the client of the recordings broke off. Resets stand between the parts, as they did."""
    yield from pages(engine)
    yield from warm_up(engine)
    yield from reset(engine, "01-reset")
    yield Call("02-metrics-before", "/metrics")
    yield from prefixes()
    yield Call("07-metrics-after", "/metrics")
    yield from reset(engine, "reset-2")
    yield Call("08-chat-after-reset", CHAT, streamed(chat(2060, 2045, words(1, 200), system=0)))
    yield from salts(engine)
    yield from completions()
    yield from small_chats(engine)
    yield from tokenising()
    yield from errors()
    yield from reset(engine, "reset-3")
    yield from evictions()
    yield Call("41-metrics-end", "/metrics")


def pages(engine: str) -> Iterator[Call]:
    vllm, sglang = ("version",), ("model_info", "server_info", "get_server_info", "version")
    for path in ("v1/models", "health", *(vllm if engine == "vllm" else sglang)):
        yield Call(f"00-get-{path.replace('/', '-')}", f"/{path}")


def reset(engine: str, name: str) -> Iterator[Call]:
    yield Call(name, "/reset_prefix_cache" if engine == "vllm" else "/flush_cache", b"")


def warm_up(engine: str) -> Iterator[Call]:
    """What was counted before the first page was read: SGLang's own request at its start, and a first chat."""
    if engine == "sglang":
        yield Call("warm-up-ids", COMPLETION, forced({"prompt": token_ids(words(17, 900))}))
    yield Call("warm-up", CHAT, streamed(control(34, 950)))


def prefixes() -> Iterator[Call]:
    for number, (ending, (total, shared)) in enumerate(PREFIXES.items()):
        first = 300 * number
        cold, warm = (chat(total + more, shared, words(1, 200 + more), system=first) for more in (0, 5))
        yield Call(f"03-chat-cold{ending}", CHAT, streamed(cold))
        yield Call(f"04-chat-warm{ending}", CHAT, streamed(warm))
        yield Call(f"05-chat-control-first-token-changed{ending}", CHAT, streamed(control(total + 7, first + 7)))
        yield Call(f"06-chat-identical-repeat{ending}", CHAT, streamed(cold))


def salts(engine: str) -> Iterator[Call]:
    messages = chat(2038, 2023, words(1, 200), system=40)
    for name, salt in (("a-cold", "a"), ("a-warm", "a"), ("b-cold", "b"), ("none-cold", None)):
        yield Call(f"09-salt-{name}", CHAT, streamed(messages) | ({} if salt is None else {"cache_salt": salt}))
    for name in ("cold", "warm") if engine == "sglang" else ():
        yield Call(f"09-extra-key-x-{name}", CHAT, streamed(messages, extra_key="x"))
    yield Call("09-salt-empty-string", CHAT, streamed(tiny(60), cache_salt=""))


def completions() -> Iterator[Call]:
    text, ids = words(1370, 70), token_ids(words(600, 500))
    yield Call("10-completions-stream", COMPLETION, forced({"prompt": text}, **STREAM))
    yield Call("10-completions-plain", COMPLETION, forced({"prompt": text}))
    yield Call("10-completions-token-ids", COMPLETION, forced({"prompt": ids}))
    yield Call("10-completions-token-ids-again", COMPLETION, forced({"prompt": ids}))
    yield Call("10-completions-logprobs-stream", COMPLETION, forced({"prompt": words(5, 800)}, logprobs=2, **STREAM))


def small_chats(engine: str) -> Iterator[Call]:
    messages = chat(37, 25, words(1, 20), system=30)
    ends = {"logit_bias": {str(tokenizer().token_to_id(TURN_END)): 100}}
    free = {key: value for key, value in streamed(messages, 200).items() if key != "ignore_eos"}
    stop = letters_of(messages, 3 if engine == "vllm" else 1)
    continuous = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    bodies = {
        "plain": forced({"messages": messages}),
        "stream-no-usage": forced({"messages": messages}, stream=True),
        "stream-continuous-usage": {**streamed(messages), **continuous},
        "stream-logprobs": streamed(messages, logprobs=True, top_logprobs=2),
        "stream-stop": {**free, "max_tokens": 64, "temperature": 1.0, "seed": 5, "stop": [stop]},
        "max-1": streamed(messages, 1),
        "ignore-eos-200": streamed(messages, 200),
        "eos-allowed": {**free, **ends},
        "eos-biased-but-ignored": streamed(messages, 20, **ends),
        "min-tokens": {**free, **ends, "max_tokens": 20, "min_tokens": 10},
    }
    for name, body in bodies.items():
        yield Call(f"11-chat-{name}", CHAT, body)
    yield Call("11-chat-request-id-header", CHAT, streamed(messages), headers=(("X-Request-Id", "my-id-123"),))
    yield Call("11-chat-return-token-ids", CHAT, streamed(messages, return_token_ids=True))


def letters_of(messages: Messages, number: int) -> str:
    """Letters from within the word that is the answer's token of that number, which none before it has."""
    vocabulary = tiny_vocabulary()
    said = Answers(0, vocabulary.words).to(vocabulary.encode_chat(messages))
    *before, word = (vocabulary.decode([token]) for token in islice(said, number))
    ends = [word[place:] for place in range(2, len(word))]
    return min((end for end in ends if end not in "".join(before)), key=len)


def tokenising() -> Iterator[Call]:
    yield Call("12-tokenize-prompt", "/tokenize", {"model": "tiny", "prompt": words(7)})
    chat_of_one = [{"role": "user", "content": "#" + words(5, 3)}]
    yield Call("12-tokenize-chat", "/tokenize", {"model": "tiny", "messages": chat_of_one})
    yield Call("12-detokenize", "/detokenize", {"model": "tiny", "tokens": token_ids(words(4))})


def errors() -> Iterator[Call]:
    long, messages = chat(8904, 8890, words(1, 200), system=11), tiny(80)
    bodies = {
        "too-long-chat": streamed(long),
        "too-long-chat-plain": forced({"messages": long}),
        "max-tokens-too-big": streamed(messages, 100000),
        "max-tokens-zero": streamed(messages, 0),
        "unknown-model": {**streamed(messages), "model": "nope"},
        "bad-json": b'{"model": "tiny", ',
        "no-messages": {"model": "tiny"},
        "bad-temperature": {**streamed(messages), "temperature": -1},
        "stream-options-without-stream": {**streamed(messages), "stream": False},
        "unknown-field": streamed(messages, no_such_field=1),
    }
    for name, body in bodies.items():
        yield Call(f"20-error-{name}", CHAT, body)
    yield Call("20-error-too-long-completion", COMPLETION, forced({"prompt": words(8879)}, **STREAM))
    yield Call("20-error-404", "/no/such/path")
    yield Call("20-error-405", CHAT)


def evictions() -> Iterator[Call]:
    def asked(number: int) -> Messages:
        return chat(2151, 2140, words(1, 400 + number), system=90)

    yield Call("40-evict-cold", CHAT, streamed(asked(1)))
    yield Call("40-evict-warm", CHAT, streamed(asked(2)))
    for number, total in enumerate(FILLERS):
        filler = chat(total, total - 12, words(1, 200), system=120 * number + 200)
        yield Call(f"40-evict-filler-{number}", CHAT, streamed(filler, 1))
    yield Call("40-evict-after-fill", CHAT, streamed(asked(3)))


def uncached_run() -> Iterator[Call]:
    """The run without prefix caching and without the report of cached tokens."""
    messages = chat(2256, 2241, words(1, 200), system=0)
    changed = control(2258, 0)
    yield Call("60-caching-off-chat-cold", CHAT, streamed(messages, 4))
    yield Call("60-caching-off-chat-again", CHAT, streamed(messages, 4))
    yield Call("60-caching-off-chat-control", CHAT, streamed(changed, 4))
    yield Call("60-caching-off-chat-plain", CHAT, forced({"messages": changed}, 4))
    yield Call("60-caching-off-metrics", "/metrics")


def forced(body: dict[str, Any], tokens: int = 8, **more: Any) -> dict[str, Any]:
    return {"model": "tiny", **body, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, **more}


def streamed(messages: Messages, tokens: int = 8, **more: Any) -> dict[str, Any]:
    return forced({"messages": messages}, tokens, **STREAM, **more)


def tiny(first: int) -> Messages:
    """26 tokens, 7 of which are those of any other chat."""
    return chat(26, 16, words(1, first + 1), system=first)


def control(total: int, first: int) -> Messages:
    """A chat that begins with 9 tokens which only others of its kind have in common with it, and 7 those of any."""
    begins = f"# zero zone{words(total - 60, first)}"
    missing = total - len(Prompt((begins, "#")).ids)
    return Prompt((begins, "#" + words(missing, 200))).messages
