"""vLLM's streams: what its chunks look like, byte by byte."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from harness.sim.driver import Stream
from harness.sim.manners.ending import text_of, with_end
from harness.sim.manners.engine import Engine
from harness.sim.manners.openai import Asked, StreamOptions, in_json

DONE = b"data: [DONE]\n\n"
NO_IDS = b"null"


@dataclass(frozen=True, slots=True)
class Shape:
    """What stands around a chunk's text. `after`: between the text and its token ids, `last`: the same at the end."""

    kind: str
    before: bytes
    after: bytes
    last: bytes
    """With places for the finish reason and the stop."""


CHAT = Shape(
    "chat.completion.chunk",
    b'"delta":{"content":"',
    b'"},"logprobs":null,"finish_reason":null,"token_ids":',
    b'"},"logprobs":null,"finish_reason":"%s","stop_reason":%s,"token_ids":',
)
COMPLETION = Shape(
    "text_completion",
    b'"text":"',
    b'","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":',
    b'","logprobs":null,"finish_reason":"%s","stop_reason":%s,"prompt_token_ids":null,"token_ids":',
)
"""The first chunk of a completion has its prompt's ids in the place of the first null, where they are wanted."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """One stream: how its chunks are written."""

    engine: Engine
    asked: Asked
    shape: Shape
    options: StreamOptions
    wants_ids: bool
    fingerprint: str
    usage: Callable[[Asked], dict[str, object]]
    """That of the last chunk, with the cached tokens."""

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """All events of the answer, which is begun with the first one that is asked for."""
        asked, shape = self.asked, self.shape
        stream = self.engine.driver.submit(asked)
        begins = self._begins + b'"choices":[{"index":0,' + shape.before
        ends = shape.after + NO_IDS + b"}]}\n\n"
        plain = not (self.wants_ids or self._continuous)
        told_role = shape is not CHAT
        try:
            async for new in stream:
                if not told_role:
                    told_role = True
                    yield self._role()
                text = text_of(asked, new, stream, self.engine)
                if plain and not stream.ended:
                    yield begins + text + ends
                else:
                    yield begins + text + self._end_of_chunk(new, stream)
            if asked.refusal is not None:
                yield self._error(asked.refusal)
            elif self.options.include_usage:
                yield self._usage()
        finally:
            stream.close()
        yield DONE

    @property
    def _begins(self) -> bytes:
        asked = self.asked
        told = {"id": asked.id, "object": self.shape.kind, "created": asked.created_s, "model": asked.model}
        return b"data: " + in_json(told)[:-1] + b","

    @property
    def _continuous(self) -> bool:
        return bool(self.options.include_usage and self.options.continuous_usage_stats)

    @property
    def _fingerprint(self) -> bytes:
        return b',"system_fingerprint":' + in_json(self.fingerprint)

    def _role(self) -> bytes:
        choice = (
            b'"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'
        )
        ids = in_json(list(self.asked.prompt_ids)) if self.wants_ids else NO_IDS
        return (
            self._begins + choice + self._usage_so_far(0) + b',"prompt_token_ids":' + ids + b',"prompt_text":null}\n\n'
        )

    def _end_of_chunk(self, new: Sequence[int], stream: Stream) -> bytes:
        asked, shape = self.asked, self.shape
        ends = shape.after
        if stream.ended:
            # Where a token ended the answer, vLLM does not say which.
            stop = asked.stop if isinstance(asked.stop, str) else None
            ends = shape.last % (asked.finish_reason.encode(), in_json(stop))
        if self.wants_ids and shape is COMPLETION and stream.given == len(new):
            ends = ends.replace(b'"prompt_token_ids":null', b'"prompt_token_ids":' + in_json(list(asked.prompt_ids)))
        ids = in_json(with_end(asked, new) if stream.ended else list(new)) if self.wants_ids else NO_IDS
        usage = self._usage_so_far(stream.given)
        told_of_all = self._fingerprint if stream.ended and not self.options.include_usage else b""
        return ends + ids + b"}]" + usage + told_of_all + b"}\n\n"

    def _usage_so_far(self, output_tokens: int) -> bytes:
        if not self._continuous:
            return b""
        prompt_tokens = len(self.asked.prompt_ids)
        usage = {
            "prompt_tokens": prompt_tokens,
            "total_tokens": prompt_tokens + output_tokens,
            "completion_tokens": output_tokens,
            "completion_tokens_details": None,
        }
        return b',"usage":' + in_json(usage)

    def _usage(self) -> bytes:
        usage = in_json(self.usage(self.asked))
        return self._begins + b'"choices":[],"usage":' + usage + self._fingerprint + b"}\n\n"

    @staticmethod
    def _error(message: str) -> bytes:
        error = {"message": message, "type": "InternalServerError", "param": None, "code": 500}
        return b"data: " + in_json({"error": error}) + b"\n\n"
