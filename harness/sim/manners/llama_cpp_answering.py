"""From a request to llama.cpp's server to its answer, streamed or whole."""

from __future__ import annotations

import itertools
import random
import string
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import orjson

from harness.sim.driver import Stream
from harness.sim.manners.engine import Engine
from harness.sim.manners.llama_cpp_bodies import Bodies, Chat, Ending, Named, Native, Text
from harness.sim.manners.llama_cpp_pages import BUILD, Server
from harness.sim.manners.llama_cpp_refusal import HEADERS, JSON, too_long
from harness.sim.manners.llama_cpp_request import Asked
from harness.sim.manners.llama_cpp_settings import settings_of
from harness.sim.manners.llama_cpp_timings import admitted, progress, timings_of, usage
from harness.sim.manners.llama_cpp_watch import Watch
from harness.sim.manners.stops import spoken
from harness.sim.web import Answer, Streamed

_ID = string.ascii_letters + string.digits


class Answering:
    """Hands requests to the scheduler, and says what becomes of them."""

    def __init__(self, server: Server, engine: Engine, watch: Watch) -> None:
        self._server = server
        self._engine = engine
        self._watch = watch
        self._vocabulary = engine.vocabulary
        self._tasks = itertools.count()
        self._ids = random.Random()

    async def answer(self, asked: Asked) -> Answer | Streamed:
        """Raises Refusal. A stream's head goes out when the request gets a slot."""
        asked.task = next(self._tasks)
        if asked.slot is not None:
            asked.slot %= self._server.slots
        self._set_length(asked)
        stream = self._engine.driver.submit(asked)
        if not asked.streams:
            await stream.whole()
            self._refuse_if_too_long(asked)
            return Answer(200, self._bodies(asked).whole(self._ending(asked)), JSON, HEADERS)
        stream.tells_progress = asked.flags["return_progress"]
        started = False
        try:
            await self._watch.start(asked)
            self._refuse_if_too_long(asked)
            started = True
        finally:
            if not started:
                stream.close()
        return Streamed(self._events(asked, stream), "text/event-stream", {**HEADERS, "X-Accel-Buffering": "no"})

    def _set_length(self, asked: Asked) -> None:
        """As asked for, as far as the context has room and no stop string comes before."""
        room = max(1, self._server.slot_tokens - len(asked.prompt_ids))
        asked.max_tokens = room if asked.limit < 0 else min(asked.limit, room)
        if not asked.stops:
            return
        said = spoken(map(self._text, self._engine.answer_ahead(asked)), asked.stops)
        asked.pieces, asked.said, asked.stopping_word = said.pieces, said.text, said.stop
        asked.max_tokens = len(said.pieces)

    def _text(self, token: int) -> str:
        return self._vocabulary.decode([token])

    def _refuse_if_too_long(self, asked: Asked) -> None:
        if asked.refusal is not None:
            raise too_long(len(asked.prompt_ids), self._server.slot_tokens)

    async def _events(self, asked: Asked, stream: Stream) -> AsyncGenerator[bytes, None]:
        bodies = self._bodies(asked)
        told = 0
        try:
            if stream.tells_progress:
                begun_s, cached = admitted(asked)
                yield bodies.progress(_progress(asked, cached, begun_s))
            async for new in stream:
                if new:
                    yield self._said(asked, bodies, told, new)
                    told += len(new)
                else:
                    yield bodies.progress(_progress(asked, asked.prefilled_tokens, asked.told_s))
        finally:
            stream.close()

    def _said(self, asked: Asked, bodies: Bodies, told: int, new: Sequence[int]) -> bytes:
        """The events of new tokens, `told` of which came before, with what stands before the first and after all."""
        events: list[bytes] = []
        if not told:
            if asked.flags["return_progress"]:
                events.append(bodies.progress(_progress(asked, asked.prefilled_tokens, asked.told_s)))
            events.append(bodies.opening())
        each, pieces, in_json = asked.flags["timings_per_token"], asked.pieces, self._vocabulary.in_json
        for number, token in enumerate(new, told + 1):
            text = in_json[token] if pieces is None else _escaped(pieces[number - 1])
            # The token that completes a stop string tells its timings in any case.
            tells = each or (asked.stopping_word is not None and number == asked.max_tokens)
            more = {"timings": timings_of(asked, asked.told_s, number)} if tells else None
            events.append(bodies.piece(text, token, number, more))
        if asked.end is not None:
            events.append(bodies.end(self._ending(asked)))
        return b"".join(events)

    def _bodies(self, asked: Asked) -> Bodies:
        name = f"chatcmpl-{''.join(self._ids.choices(_ID, k=32))}"
        named = Named(name, int(time.time()), self._server.alias, BUILD)
        if asked.kind == "native":
            return Native(named, len(asked.prompt_ids))
        return Chat(named) if asked.kind == "chat" else Text(named)

    def _ending(self, asked: Asked) -> Ending:
        assert asked.ended_s is not None
        said = self._vocabulary.decode(asked.output_ids) if asked.said is None else asked.said
        return Ending(
            text=said,
            token_ids=asked.output_ids if asked.flags["return_tokens"] else (),
            stop=asked.stopping_word,
            usage=usage(asked),
            timings=timings_of(asked, asked.ended_s),
            wants_usage=asked.wants_usage,
            own=self._own(asked) if asked.kind == "native" else {},
        )

    def _own(self, asked: Asked) -> dict[str, Any]:
        ends = (self._vocabulary.end_of_text, self._vocabulary.turn_end)
        return {
            "id_slot": asked.slot,
            "generation_settings": settings_of(asked, ends),
            "prompt": self._vocabulary.decode(asked.prompt_ids),
            "tokens_cached": len(asked.prompt_ids) + len(asked.output_ids) - 1,
        }


def _progress(asked: Asked, processed: int, now_s: float) -> dict[str, Any]:
    timings = {"timings": timings_of(asked, now_s, 0)} if asked.flags["timings_per_token"] else {}
    return {**timings, "prompt_progress": progress(asked, processed, now_s)}


def _escaped(text: str) -> bytes:
    return orjson.dumps(text)[1:-1]
