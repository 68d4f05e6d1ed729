"""SGLang's streams: what its chunks look like, byte by byte."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from harness.sim.manners.ending import text_of
from harness.sim.manners.engine import Engine
from harness.sim.manners.openai import Asked, StreamOptions, in_json
from harness.sim.manners.sglang_errors import bad
from harness.sim.manners.sglang_usage import said_tokens, usage

DONE = b"data: [DONE]\n\n"
_NOT_ENDED = b',"logprobs":null,"finish_reason":null,"matched_stop":null}]'


@dataclass(frozen=True, slots=True)
class Chunks:
    """One stream: how its chunks are written."""

    engine: Engine
    asked: Asked
    chat: bool
    options: StreamOptions

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """All events of the answer, which is begun with the first one that is asked for.

        Raises Refused in the place of the first one if it can never fit.
        """
        asked = self.asked
        begins, ends = self._around()
        stream = self.engine.driver.submit(asked)
        nothing_told = True
        try:
            async for new in stream:
                if nothing_told and self.chat:
                    yield self._begins + _ROLE
                nothing_told = False
                text = text_of(asked, new, stream, self.engine) if asked.asked_tokens else b""
                if not self.chat and stream.ended:
                    yield begins + text + b'"' + self._ended + self._usage_so_far(stream.given) + b"}\n\n"
                elif text and self.options.continuous_usage_stats:
                    yield begins + text + ends + self._usage_so_far(stream.given) + b"}\n\n"
                elif text:
                    yield begins + text + ends
            if nothing_told:
                raise bad(asked.refusal or "The request was aborted.")
        finally:
            stream.close()
        if self.chat:
            yield self._begins + b'"choices":[{"index":0,"delta":{"reasoning_content":null}' + self._ended + b"}\n\n"
        if self.options.include_usage:
            told = usage(asked, self.engine.options, said_tokens(asked), completion_details=self.chat)
            yield self._begins + b'"choices":[],"usage":' + in_json(told) + b"}\n\n"
        yield DONE

    @property
    def _begins(self) -> bytes:
        asked = self.asked
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        told = {"id": asked.id, "object": kind, "created": asked.created_s, "model": asked.model}
        return b"data: " + in_json(told)[:-1] + b","

    def _around(self) -> tuple[bytes, bytes]:
        """What stands before and after a chunk's text, as far as it is the same for all of them."""
        if self.chat:
            begins = b'"choices":[{"index":0,"delta":{"reasoning_content":null,"content":"'
            ends = b'"}' + _NOT_ENDED
            without_usage = b"}\n\n"
        else:
            begins = b'"choices":[{"index":0,"text":"'
            ends = b'"' + _NOT_ENDED
            without_usage = b',"usage":null}\n\n'
        return self._begins + begins, ends + (b"" if self.options.continuous_usage_stats else without_usage)

    @property
    def _ended(self) -> bytes:
        reason, stop = self.asked.finish_reason, in_json(self.asked.stop)
        return b',"logprobs":null,"finish_reason":"%s","matched_stop":%s}]' % (reason.encode(), stop)

    def _usage_so_far(self, output_tokens: int) -> bytes:
        if not self.options.continuous_usage_stats:
            return b',"usage":null'
        return b',"usage":' + in_json(usage(self.asked, self.engine.options, output_tokens))


_ROLE = (
    b'"choices":[{"index":0,"delta":{"reasoning_content":null,"role":"assistant","content":""}' + _NOT_ENDED + b"}\n\n"
)


async def first_and_rest(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The same pieces, the first of which has come when this returns. Raises what comes in its place."""
    first = await anext(pieces)

    async def all_of_them() -> AsyncGenerator[bytes, None]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return all_of_them()
