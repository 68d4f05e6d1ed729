"""vLLM's answers to chats and completions."""

from __future__ import annotations

import json

from harness.sim.manners.ending import whole_text, with_end
from harness.sim.manners.engine import Engine
from harness.sim.manners.fastapi import HEADERS, Refused, answer
from harness.sim.manners.openai import Asked, ChatBody, CompletionBody, StreamOptions, read
from harness.sim.manners.vllm_errors import error
from harness.sim.manners.vllm_request import asked_of
from harness.sim.manners.vllm_stream import CHAT, COMPLETION, Chunks
from harness.sim.web import Answer, Call, Streamed


class VllmAnswers:
    """POST /v1/chat/completions and POST /v1/completions of one engine."""

    def __init__(self, engine: Engine, fingerprint: str) -> None:
        self.engine = engine
        self.fingerprint = fingerprint

    async def chat(self, call: Call) -> Answer | Streamed:
        """Raises BadBody and Refused."""
        return await self._answer(read(call.body, ChatBody, json.loads), call)

    async def completion(self, call: Call) -> Answer | Streamed:
        """Raises BadBody and Refused."""
        return await self._answer(read(call.body, CompletionBody, json.loads), call)

    async def _answer(self, body: ChatBody | CompletionBody, call: Call) -> Answer | Streamed:
        asked = asked_of(body, call.headers.get("x-request-id"), self.engine)
        chat = isinstance(body, ChatBody)
        if body.stream:
            options = body.stream_options or StreamOptions(include_usage=False)
            if options.include_usage is None:  # as it is where there are options that do not name it
                options = options.model_copy(update={"include_usage": True})
            shape = CHAT if chat else COMPLETION
            chunks = Chunks(
                self.engine,
                asked,
                shape,
                options,
                body.return_token_ids,
                self.fingerprint,
                lambda asked: self._usage(asked, chat),
            )
            return Streamed(chunks.pieces(), headers=HEADERS)
        await self.engine.driver.submit(asked).whole()
        if asked.refusal is not None:
            raise Refused(error(500, asked.refusal, "InternalServerError", None))
        return answer(self._whole_chat(asked, body) if chat else self._whole_completion(asked, body))

    def _whole_chat(self, asked: Asked, body: ChatBody | CompletionBody) -> dict[str, object]:
        message = {
            "role": "assistant",
            "content": whole_text(asked, self.engine),
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "reasoning": None,
        }
        choice = {"index": 0, "message": message, **self._ended(asked, body), "routed_experts": None}
        return {
            **self._head(asked, "chat.completion", choice),
            "usage": self._whole_usage(asked, True),
            "prompt_logprobs": None,
            "prompt_token_ids": list(asked.prompt_ids) if body.return_token_ids else None,
            "prompt_text": None,
            **_REST,
        }

    def _whole_completion(self, asked: Asked, body: ChatBody | CompletionBody) -> dict[str, object]:
        choice = {
            "index": 0,
            "text": whole_text(asked, self.engine),
            **self._ended(asked, body),
            "prompt_logprobs": None,
            "prompt_token_ids": list(asked.prompt_ids) if body.return_token_ids else None,
            "routed_experts": None,
        }
        usage = self._whole_usage(asked, False)
        return {**self._head(asked, "text_completion", choice), "usage": usage, **_REST}

    def _head(self, asked: Asked, kind: str, choice: dict[str, object]) -> dict[str, object]:
        return {
            "id": asked.id,
            "object": kind,
            "created": asked.created_s,
            "model": asked.model,
            "choices": [choice],
            "service_tier": None,
            "system_fingerprint": self.fingerprint,
        }

    def _ended(self, asked: Asked, body: ChatBody | CompletionBody) -> dict[str, object]:
        return {
            "logprobs": None,
            "finish_reason": asked.finish_reason,
            "stop_reason": asked.stop if isinstance(asked.stop, str) else None,
            "token_ids": with_end(asked, asked.output_ids) if body.return_token_ids else None,
        }

    def _usage(self, asked: Asked, chat: bool) -> dict[str, object]:
        """That of a stream: what is not known is left out."""
        prompt_tokens, output_tokens = len(asked.prompt_ids), len(asked.output_ids)
        usage: dict[str, object] = {
            "prompt_tokens": prompt_tokens,
            "total_tokens": prompt_tokens + output_tokens,
            "completion_tokens": output_tokens,
        }
        if self.engine.options.report_cached:
            created = {"created_cache_tokens": self._created_tokens(asked)} if chat else {}
            usage["prompt_tokens_details"] = {"cached_tokens": asked.cached_tokens or 0, **created}
        return usage

    def _whole_usage(self, asked: Asked, chat: bool) -> dict[str, object]:
        """That of a whole answer: what is not known is null."""
        usage = self._usage(asked, chat)
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            details = {"created_cache_tokens": None, **details, "multimodal_tokens": None}
            details = {"cached_tokens": details.pop("cached_tokens"), **details}
        return {**usage, "prompt_tokens_details": details, "completion_tokens_details": None}

    def _created_tokens(self, asked: Asked) -> int:
        """Tokens of the prompt's full blocks that were not in the cache before."""
        options = self.engine.options
        whole = len(asked.prompt_ids) // options.granularity_tokens * options.granularity_tokens
        return whole - (asked.cached_tokens or 0) if options.prefix_caching else 0


_REST = {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}
"""What whole answers end with."""
