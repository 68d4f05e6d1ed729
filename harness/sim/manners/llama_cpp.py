"""How llama.cpp's server talks: build 11549 of October 2026, with one model."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import orjson

from harness.sim.driver import Clock
from harness.sim.generation import Generation
from harness.sim.manners.engine import Engine
from harness.sim.manners.llama_cpp_answering import Answering
from harness.sim.manners.llama_cpp_pages import Server, models, new_media_marker, props, slot
from harness.sim.manners.llama_cpp_refusal import (
    HEADERS,
    JSON,
    NOT_FOUND,
    UNAUTHORIZED,
    Refusal,
    not_supported,
    parsed,
    wrong_type,
)
from harness.sim.manners.llama_cpp_request import (
    Asked,
    chat_ids,
    chat_text,
    messages_in,
    mixed_ids,
    read_chat,
    read_completion,
    whole_number,
)
from harness.sim.manners.llama_cpp_slot_files import ACTIONS, SlotFiles
from harness.sim.manners.llama_cpp_watch import Watch
from harness.sim.options import SimOptions
from harness.sim.web import Answer, Call, Streamed

Handler = Callable[[Call], Awaitable[Answer | Streamed]]

_PUBLIC = ("/health", "/v1/health")
"""Paths that need no key."""


class LlamaCpp:
    """What it leaves out: logprobs, several prompts or answers in one request, pings in a stream that waits for long,
    embeddings, and its web page."""

    name = "llama-cpp"

    def __init__(self, options: SimOptions, clock: Clock | None = None) -> None:
        """`clock`: as `Engine` takes it."""
        self._watch = Watch()
        self._engine = Engine(options, self._watch, _note_time, clock)
        self._vocabulary = self._engine.vocabulary
        self._server = Server(
            alias=options.alias,
            model_path=options.model_path,
            slots=options.slots,
            slot_tokens=self._engine.scheduler.kv_capacity_tokens // options.slots,
            vocabulary_size=len(self._vocabulary),
            metrics=options.metrics,
            media_marker=new_media_marker(),
        )
        self._slot_files = SlotFiles(
            self._engine.scheduler, options.slot_save_path, options.model_path, self._server.slot_tokens
        )
        self._answering = Answering(self._server, self._engine, self._watch)
        self._routes = self._all_routes()

    async def answer(self, call: Call) -> Answer | Streamed:
        if not self._may(call):
            return UNAUTHORIZED
        handler = self._routes.get((call.method, call.path))
        if handler is None and call.method == "POST" and call.path.startswith("/slots/"):
            handler = self._slot_action
        if handler is None:
            return NOT_FOUND
        try:
            return await handler(call)
        except Refusal as refusal:
            return refusal.answer()

    def _may(self, call: Call) -> bool:
        key = self._engine.options.api_key
        if key is None or call.path in _PUBLIC:
            return True
        return key in (call.headers.get("authorization", "").removeprefix("Bearer "), call.headers.get("x-api-key"))

    def _all_routes(self) -> Mapping[tuple[str, str], Handler]:
        routes: dict[tuple[str, str], Handler] = {}
        for prefix in ("", "/v1"):
            routes["GET", f"{prefix}/health"] = self._health
            routes["GET", f"{prefix}/models"] = self._models
            routes["POST", f"{prefix}/chat/completions"] = self._chat
        return routes | {
            ("GET", "/props"): self._props,
            ("GET", "/slots"): self._slots,
            ("GET", "/metrics"): self._metrics,
            ("GET", "/lora-adapters"): self._lora_adapters,
            ("POST", "/v1/completions"): self._completion,
            ("POST", "/completion"): self._native_completion,
            ("POST", "/completions"): self._native_completion,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/detokenize"): self._detokenize,
            ("POST", "/apply-template"): self._apply_template,
            ("POST", "/v1/chat/completions/input_tokens"): self._input_tokens,
        }

    async def _health(self, _: Call) -> Answer:
        return _json({"status": "ok"})

    async def _models(self, _: Call) -> Answer:
        return _json(models(self._server, int(time.time())))

    async def _props(self, _: Call) -> Answer:
        return _json(props(self._server))

    async def _lora_adapters(self, _: Call) -> Answer:
        return _json([])

    async def _slots(self, call: Call) -> Answer:
        states = self._engine.scheduler.slots
        if call.query.get("fail_on_no_slot") and all(state.generation is not None for state in states):
            raise Refusal("no slot available", "unavailable_error", 503)
        return _json([slot(state, self._server.slot_tokens) for state in states])

    async def _metrics(self, _: Call) -> Answer:
        if not self._server.metrics:
            raise not_supported("This server does not support metrics endpoint. Start it with `--metrics`")
        head = {**HEADERS, "Process-Start-Time-Unix": str(self._watch.start_us)}
        page = self._watch.page(self._engine.driver.lag_s, self._engine.driver.greatest_lag_s)
        return Answer(200, page.encode(), "text/plain; version=0.0.4", head)

    async def _chat(self, call: Call) -> Answer | Streamed:
        return await self._answering.answer(read_chat(parsed(call.body), self._vocabulary, self._caches))

    async def _completion(self, call: Call) -> Answer | Streamed:
        return await self._complete(call, "text")

    async def _native_completion(self, call: Call) -> Answer | Streamed:
        return await self._complete(call, "native")

    async def _complete(self, call: Call, kind: Literal["text", "native"]) -> Answer | Streamed:
        asked = read_completion(parsed(call.body), kind, self._vocabulary, self._caches)
        return await self._answering.answer(asked)

    @property
    def _caches(self) -> bool:
        """Whether prompts are cached unless a request says otherwise."""
        return self._engine.options.prefix_caching

    async def _tokenize(self, call: Call) -> Answer:
        content = _field(call, "content", "")
        if not isinstance(content, str | list):
            raise wrong_type(content, "string")
        ids = mixed_ids([content] if isinstance(content, str) else content, self._vocabulary)
        if _field(call, "with_pieces", False) is True:
            return _json({"tokens": [{"id": token, "piece": self._piece(token)} for token in ids]})
        return _json({"tokens": ids})

    def _piece(self, token: int) -> str | list[int]:
        """A token's text; its bytes where they are no whole characters."""
        data = self._vocabulary.bytes[token]
        try:
            return data.decode()
        except UnicodeDecodeError:
            return list(data)

    async def _detokenize(self, call: Call) -> Answer:
        tokens = _field(call, "tokens", [])
        if not isinstance(tokens, list):
            raise wrong_type(tokens, "array")
        ids, size = [whole_number(token) for token in tokens], len(self._vocabulary)
        if (beyond := next((token % 2**64 for token in ids if not 0 <= token < size), None)) is not None:
            message = f"vector::_M_range_check: __n (which is {beyond}) >= this->size() (which is {size})"
            raise Refusal(message, "server_error", 500)
        return _json({"content": self._vocabulary.decode(ids)})

    async def _apply_template(self, call: Call) -> Answer:
        body = parsed(call.body)
        return _json({"prompt": chat_text(messages_in(body), body.get("add_generation_prompt") is not False)})

    async def _input_tokens(self, call: Call) -> Answer:
        ids = chat_ids(messages_in(parsed(call.body)), self._vocabulary)
        return _json({"input_tokens": len(ids), "object": "response.input_tokens"})

    async def _slot_action(self, call: Call) -> Answer:
        """Saves, restores or empties a slot when it is idle; numbers that are too great begin again with the first."""
        self._slot_files.refuse_without_folder()
        name, action = call.path.removeprefix("/slots/"), call.query.get("action")
        if not re.fullmatch(r"\d+", name):
            raise Refusal("Invalid slot ID")
        if action not in ACTIONS:
            raise Refusal("Invalid action")
        path = None if action == "erase" else self._slot_files.path(parsed(call.body))
        number = int(name) % self._server.slots
        while (busy := self._engine.scheduler.slots[number].generation) is not None:
            await self._watch.end(busy)
            await asyncio.sleep(0)  # the next step begins, and a request that waits has the slot
        return _json({"id_slot": int(name), **self._slot_files.act(action, number, path)})


def _note_time(served: Sequence[Generation], now_s: float) -> None:
    for generation in served:
        if isinstance(generation, Asked):
            generation.told_s = now_s


def _json(value: object) -> Answer:
    return Answer(200, orjson.dumps(value), JSON, HEADERS)


def _field(call: Call, name: str, default: object) -> Any:
    body = parsed(call.body)
    return body.get(name, default) if isinstance(body, dict) else default
