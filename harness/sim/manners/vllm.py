"""The manners of vLLM's OpenAI-compatible server, release 0.32."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from dataclasses import replace

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from harness.sim.driver import Clock
from harness.sim.manners.engine import Engine
from harness.sim.manners.fastapi import HEADERS, Refused, Routes, answer, handler, until_ended
from harness.sim.manners.openai import BadBody, DetokenizeBody, TokenizeBody, read
from harness.sim.manners.vllm_answers import VllmAnswers
from harness.sim.manners.vllm_errors import bad, bad_body
from harness.sim.manners.vllm_http_metrics import HttpFamilies
from harness.sim.manners.vllm_metrics import VllmPage
from harness.sim.options import SimOptions
from harness.sim.web import Answer, Call, Streamed

VERSION = "0.32.0+simulated"


class Vllm:
    """A simulated engine that talks as vLLM does. Paths that are not simulated are not there."""

    name = "vllm"

    def __init__(self, options: SimOptions, clock: Clock | None = None) -> None:
        """Raises InputError for options of no engine."""
        self.options = options
        self.page = VllmPage(options)
        self.engine = Engine(options, self.page, self.page.hears, clock)
        self.page.watch(self.engine.driver)
        self._http = HttpFamilies(self.page.registry)
        answers = VllmAnswers(self.engine, f"vllm-{VERSION}-{_digest(options)}")
        self._routes: Routes = {
            "/health": {"GET": self._health},
            "/metrics": {"GET": self._metrics},
            "/version": {"GET": self._version},
            "/v1/models": {"GET": self._models},
            "/v1/chat/completions": {"POST": answers.chat},
            "/v1/completions": {"POST": answers.completion},
            "/tokenize": {"POST": self._tokenize},
            "/detokenize": {"POST": self._detokenize},
            **({"/reset_prefix_cache": {"POST": self._reset}} if options.dev_mode else {}),
        }

    async def answer(self, call: Call) -> Answer | Streamed:
        driver = self.engine.driver
        began_s = driver.now_s()
        said = await self._answer(call)

        def count() -> None:
            self._http.count(call, said, call.path in self._routes, driver.now_s() - began_s)

        if isinstance(said, Answer):
            count()
            return said
        return replace(said, pieces=until_ended(said.pieces, count))

    async def _answer(self, call: Call) -> Answer | Streamed:
        key = self.options.api_key
        if key is not None and call.path.startswith("/v1") and call.headers.get("authorization") != f"Bearer {key}":
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
        return Answer(200, self.page.text(), CONTENT_TYPE_LATEST, HEADERS)

    async def _version(self, call: Call) -> Answer:
        return answer({"version": VERSION})

    async def _models(self, call: Call) -> Answer:
        now_s = int(time.time())
        permission = {
            "id": f"modelperm-{secrets.token_hex(8)}",
            "object": "model_permission",
            "created": now_s,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        model = {
            "id": self.options.alias,
            "object": "model",
            "created": now_s,
            "owned_by": "vllm",
            "root": self.options.model_path,
            "parent": None,
            "max_model_len": self.options.context_tokens,
            "permission": [permission],
        }
        return answer({"object": "list", "data": [model]})

    async def _tokenize(self, call: Call) -> Answer:
        body, vocabulary = read(call.body, TokenizeBody, json.loads), self.engine.vocabulary
        if body.messages is not None:
            tokens = vocabulary.encode_chat(body.chat(), body.add_generation_prompt)
        else:
            tokens = vocabulary.encode(body.prompt or "")
        told = {
            "count": len(tokens),
            "max_model_len": self.options.context_tokens,
            "tokens": tokens,
            "token_strs": [vocabulary.tokens[token] for token in tokens] if body.return_token_strs else None,
        }
        return answer(told)

    async def _detokenize(self, call: Call) -> Answer:
        body, vocabulary = read(call.body, DetokenizeBody, json.loads), self.engine.vocabulary
        if not vocabulary.has(body.tokens):
            raise bad("There are tokens that are out of vocabulary.", "tokens")
        return answer({"prompt": vocabulary.decode(body.tokens)})

    async def _reset(self, call: Call) -> Answer:
        return answer({"success": self.engine.scheduler.reset_cache()})


def _digest(options: SimOptions) -> str:
    """Eight letters that stand for how it was started."""
    return hashlib.sha256(repr(options).encode()).hexdigest()[:8]
