"""SGLang's answers to chats and completions."""

from __future__ import annotations

import orjson

from harness.sim.manners.ending import whole_text
from harness.sim.manners.engine import Engine
from harness.sim.manners.fastapi import HEADERS, answer
from harness.sim.manners.openai import Asked, ChatBody, CompletionBody, StreamOptions, read
from harness.sim.manners.sglang_errors import bad
from harness.sim.manners.sglang_request import asked_of, loads_chat
from harness.sim.manners.sglang_stream import Chunks, first_and_rest
from harness.sim.manners.sglang_usage import said_tokens, usage
from harness.sim.web import Answer, Call, Streamed


class SglangAnswers:
    """POST /v1/chat/completions and POST /v1/completions of one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def chat(self, call: Call) -> Answer | Streamed:
        """Raises BadBody and Refused."""
        return await self._answer(read(call.body, ChatBody, loads_chat))

    async def completion(self, call: Call) -> Answer | Streamed:
        """Raises BadBody and Refused."""
        return await self._answer(read(call.body, CompletionBody, orjson.loads))

    async def _answer(self, body: ChatBody | CompletionBody) -> Answer | Streamed:
        """The head of a stream is kept back until its first token, so that a refusal can have a status."""
        asked = asked_of(body, self.engine)
        chat = isinstance(body, ChatBody)
        if body.stream:
            chunks = Chunks(self.engine, asked, chat, body.stream_options or StreamOptions())
            return Streamed(await first_and_rest(chunks.pieces()), headers=HEADERS)
        await self.engine.driver.submit(asked).whole()
        if asked.refusal is not None:
            raise bad(asked.refusal)
        return answer(self._whole(asked, chat))

    def _whole(self, asked: Asked, chat: bool) -> dict[str, object]:
        text = whole_text(asked, self.engine) if asked.asked_tokens else ""
        message = {"role": "assistant", "content": text, "reasoning_content": None}
        choice = {
            "index": 0,
            **({"message": message} if chat else {"text": text}),
            "logprobs": None,
            "finish_reason": asked.finish_reason,
            "matched_stop": asked.stop,
        }
        weights = {"version": "default", "start": 0, "end": said_tokens(asked)}
        return {
            "id": asked.id,
            "object": "chat.completion" if chat else "text_completion",
            "created": asked.created_s,
            "model": asked.model,
            "choices": [choice],
            "usage": usage(asked, self.engine.options, said_tokens(asked)),
            "metadata": {"weight_version": "default", "weight_versions": [weights]},
        }
