"""How mlx-lm's server talks: version 0.32.2, with one model."""

from __future__ import annotations

import json
import time
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Sequence

from harness.sim.driver import Clock, Stream
from harness.sim.generation import Generation
from harness.sim.manners.engine import Engine
from harness.sim.manners.mlx_lm_bodies import DONE, Bodies, Told, error, in_json, keepalive, milestones
from harness.sim.manners.mlx_lm_request import (
    MODEL,
    Asked,
    BadRequest,
    Unserved,
    checked,
    parsed,
    set_prompt,
    stop_words,
)
from harness.sim.manners.mlx_lm_stop import spoken
from harness.sim.options import SimOptions
from harness.sim.scheduler import Step
from harness.sim.web import Answer, Call, Streamed

HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "*",
    "Access-Control-Allow-Headers": "*",
    "Connection": "close",
}
"""Of every response. The real server closes each connection by speaking HTTP/1.0."""
_CHATS = ("/v1/chat/completions", "/chat/completions")
_COMPLETIONS = "/v1/completions"


class Unwatched:
    """An observer for an engine that shows no counters."""

    def arrived(self, generation: Generation) -> None: ...
    def admitted(self, generation: Generation) -> None: ...
    def first_token(self, generation: Generation) -> None: ...
    def stepped(self, step: Step) -> None: ...
    def preempted(self, generation: Generation) -> None: ...
    def ended(self, generation: Generation) -> None: ...


class MlxLm:
    """What it leaves out: logprobs, the effect of a seed or of biased tokens, tools, images, draft models."""

    name = "mlx-lm"

    def __init__(self, options: SimOptions, clock: Clock | None = None) -> None:
        """`clock`: as `Engine` takes it."""
        self._engine = Engine(options, Unwatched(), clock=clock)
        self._vocabulary = self._engine.vocabulary

    async def answer(self, call: Call) -> Answer | Streamed:
        if call.method == "GET":
            return self._page(call)
        if call.method != "POST" or call.path not in (*_CHATS, _COMPLETIONS):
            return _answer(404, b"Not Found")
        if "content-length" not in call.headers:
            return _answer(411, in_json(error("Content-Length header is required")))
        try:
            asked = checked(parsed(call.body), call.path in _CHATS)
            return await self._served(asked)
        except BadRequest as bad:
            return _answer(400, in_json(error(str(bad))))
        except Unserved as unserved:
            return _answer(404, in_json(error(str(unserved))))

    def _page(self, call: Call) -> Answer:
        if call.path.startswith("/v1/models"):
            model = {"id": self._engine.options.model_path, "object": "model", "created": int(time.time())}
            return _answer(200, in_json({"object": "list", "data": [model]}))
        if call.path == "/health":
            return _answer(200, in_json({"status": "ok"}))
        return _answer(404, b"Not Found")

    async def _served(self, asked: Asked) -> Answer | Streamed:
        if asked.model not in (MODEL, self._engine.options.model_path):
            raise Unserved(
                "Cannot find an appropriate cached snapshot folder for the specified revision on the local disk and "
                "outgoing traffic has been disabled. To enable repo look-ups and downloads online, set "
                "'HF_HUB_OFFLINE=0' as environment variable."
            )
        set_prompt(asked, self._vocabulary)
        self._set_length(asked)
        name = f"{'chatcmpl' if asked.chat else 'cmpl'}-{uuid.uuid4()}"
        bodies = Bodies(name, int(time.time()), asked.model, asked.chat, asked.streams)
        stream = self._engine.driver.submit(asked)
        if asked.streams:
            stream.tells_progress = True
            return Streamed(
                self._events(asked, bodies, stream), "text/event-stream", {"Cache-Control": "no-cache", **HEADERS}
            )
        await stream.whole()
        return _answer(200, bodies.whole(self._text(asked), asked.finish_reason, _told(asked)))

    def _set_length(self, asked: Asked) -> None:
        """No longer than until a stop word."""
        if not (words := stop_words(asked.body)):
            return
        ahead = self._engine.answer_ahead(asked)
        stops = [(word, self._vocabulary.encode(word)) for word in words]
        said = spoken(((token, self._word(number, token)) for number, token in enumerate(ahead)), stops)
        asked.pieces, asked.stopped = said.pieces, said.stopped
        asked.max_tokens = len(said.pieces)

    def _word(self, number: int, token: int) -> str:
        """The text of an answer's token; its first one comes without the space before it."""
        text = self._vocabulary.decode([token])
        return text if number else text.removeprefix(" ")

    def _text(self, asked: Asked) -> str:
        if asked.pieces is not None:
            return "".join(asked.pieces)
        return self._vocabulary.decode(asked.output_ids).removeprefix(" ")

    async def _events(self, asked: Asked, bodies: Bodies, stream: Stream) -> AsyncGenerator[bytes, None]:
        told, steps = 0, deque[int]()
        try:
            async for new in stream:
                comments = b"" if told else _keepalives(asked, steps)
                yield comments + self._said(asked, bodies, told, new)
                told += len(new)
        finally:
            stream.close()

    def _said(self, asked: Asked, bodies: Bodies, told: int, new: Sequence[int]) -> bytes:
        """The events of new tokens, `told` of which came before, and those of the end."""
        events: list[bytes] = []
        in_json, pieces = self._vocabulary.in_json, asked.pieces
        for number, token in enumerate(new, told):
            if pieces is not None:
                text = json.dumps(pieces[number]).encode()[1:-1]
            else:
                text = in_json[token] if number else in_json[token].removeprefix(b" ")
            if text:
                events.append(bodies.piece(text))
        if asked.end is not None:
            events.append(bodies.last(asked.finish_reason))
            if asked.has_sound_options:
                events += [bodies.usage(_told(asked)), DONE] if asked.wants_usage else [DONE]
        return b"".join(events)


def _keepalives(asked: Asked, steps: deque[int]) -> bytes:
    """The comments for what was computed since the last ones. `steps`: those that are to come, once they are known."""
    prompt = len(asked.prompt_ids)
    assert asked.cached_tokens is not None
    if not steps:
        steps.extend(milestones(asked.cached_tokens, asked.system_tokens, prompt))
    there = prompt if asked.output_ids else asked.prefilled_tokens
    events = []
    while steps and steps[0] <= there:
        events.append(keepalive(steps.popleft() - asked.cached_tokens, prompt - asked.cached_tokens))
    return b"".join(events)


def _told(asked: Asked) -> Told:
    assert asked.cached_tokens is not None
    return Told(len(asked.prompt_ids), len(asked.output_ids), asked.cached_tokens)


def _answer(status: int, body: bytes) -> Answer:
    return Answer(status, body, "application/json", HEADERS)
