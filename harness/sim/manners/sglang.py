"""The manners of SGLang's server, release 0.5.23."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import orjson
from pydantic import BaseModel

from harness.embedded.tiny_weights import Shape
from harness.sim.driver import Clock
from harness.sim.manners.engine import Engine
from harness.sim.manners.fastapi import HEADERS, Refused, Routes, answer, handler, until_ended
from harness.sim.manners.openai import BadBody, TokenizeBody, read
from harness.sim.manners.sglang_answers import SglangAnswers
from harness.sim.manners.sglang_errors import bad, bad_body
from harness.sim.manners.sglang_http_metrics import HttpFamilies
from harness.sim.manners.sglang_metrics import SglangPage
from harness.sim.manners.sglang_pages import model_info, models, server_info
from harness.sim.options import SimOptions
from harness.sim.web import Answer, Call, Streamed

FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. "
    "(When there are running or waiting requests, the operation will not be performed.)\n"
)
NOT_FLUSHED = "Flush cache failed.\n"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LOOK_S = 0.01
"""How often a flush looks whether the engine is idle."""


class DetokenizeBody(BaseModel):
    tokens: list[int]
    skip_special_tokens: bool = True


class Sglang:
    """A simulated engine that talks as SGLang does. Paths that are not simulated are not there."""

    name = "sglang"

    def __init__(self, options: SimOptions, clock: Clock | None = None) -> None:
        """Raises InputError for options of no engine."""
        self.options = options
        self.page = SglangPage(options)
        self.engine = Engine(options, self.page, self.page.hears, clock)
        self.page.watch(self.engine.driver)
        self._http = HttpFamilies(self.page.process)
        self._started_s = int(time.time())
        answers = SglangAnswers(self.engine)
        self._routes: Routes = {
            "/health": {"GET": self._health},
            "/health_generate": {"GET": self._health},
            "/metrics": {"GET": self._metrics},
            "/v1/models": {"GET": self._models},
            "/model_info": {"GET": self._model_info},
            "/get_model_info": {"GET": self._model_info},
            "/server_info": {"GET": self._server_info},
            "/get_server_info": {"GET": self._server_info},
            "/v1/chat/completions": {"POST": answers.chat},
            "/v1/completions": {"POST": answers.completion},
            "/tokenize": {"POST": self._tokenize},
            "/v1/tokenize": {"POST": self._tokenize},
            "/detokenize": {"POST": self._detokenize},
            "/v1/detokenize": {"POST": self._detokenize},
            "/flush_cache": {"GET": self._flush, "POST": self._flush},
        }

    async def answer(self, call: Call) -> Answer | Streamed:
        with ExitStack() as under_way:
            under_way.callback(self._http.began(call).dec)
            said = await self._answer(call)
            self._http.answered(call, said)
            if isinstance(said, Streamed):
                return replace(said, pieces=until_ended(said.pieces, under_way.pop_all().close))
            return said

    async def _answer(self, call: Call) -> Answer | Streamed:
        key, open_to_all = self.options.api_key, ("/health", "/metrics")
        authorized = call.headers.get("authorization") == f"Bearer {key}"
        if key is not None and not authorized and not call.path.startswith(open_to_all):
            return answer({"error": "Unauthorized"}, 401)
        found = handler(self._routes, call)
        if isinstance(found, Answer):
            return found
        try:
            return await found(call)
        except BadBody as problem:
            return bad_body(problem)
        except Refused as refused:
            return refused.answer

    async def _health(self, call: Call) -> Answer:
        return Answer(200, b"", content_type=None, headers=HEADERS)

    async def _metrics(self, call: Call) -> Answer:
        return Answer(200, self.page.text(), METRICS_TYPE, HEADERS)

    async def _models(self, call: Call) -> Answer:
        return answer(models(self.options, self._started_s))

    async def _model_info(self, call: Call) -> Answer:
        return answer(model_info(self.options))

    async def _server_info(self, call: Call) -> Answer:
        return answer(server_info(self.options))

    async def _tokenize(self, call: Call) -> Answer:
        body, vocabulary = read(call.body, TokenizeBody, orjson.loads), self.engine.vocabulary
        if body.messages is not None:
            tokens = vocabulary.encode_chat(body.chat(), body.add_generation_prompt)
        else:
            tokens = vocabulary.encode(body.prompt or "")
        # The tokeniser's limit, whatever the server's is.
        return answer({"tokens": tokens, "count": len(tokens), "max_model_len": Shape().context_tokens})

    async def _detokenize(self, call: Call) -> Answer:
        body, vocabulary = read(call.body, DetokenizeBody, orjson.loads), self.engine.vocabulary
        if not vocabulary.has(body.tokens):
            raise bad("There are tokens that are out of vocabulary.")
        return answer({"text": vocabulary.decode(body.tokens, special=not body.skip_special_tokens)})

    async def _flush(self, call: Call) -> Answer:
        """Waits as long as `timeout` says, in seconds, until no request is under way."""
        deadline_s = time.monotonic() + _seconds(call.query.get("timeout", "0"))
        while self._under_way() and time.monotonic() < deadline_s:
            await asyncio.sleep(_LOOK_S)
        if not self.engine.scheduler.reset_cache():
            return Answer(400, NOT_FLUSHED.encode(), None, HEADERS)
        self.page.flushed()
        return Answer(200, FLUSHED.encode(), None, HEADERS)

    def _under_way(self) -> Sequence[object]:
        return [*self.engine.scheduler.running, *self.engine.scheduler.waiting]


def _seconds(text: str) -> float:
    """Raises Refused if it is no number."""
    try:
        return float(text)
    except ValueError as error:
        raise bad(f"timeout must be a number of seconds, got {text}.") from error
