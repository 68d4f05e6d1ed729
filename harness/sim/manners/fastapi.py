"""What vLLM and SGLang have from FastAPI: paths and methods, and how it says that there is none such."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

from harness.sim.manners.openai import in_json
from harness.sim.web import Answer, Call, Streamed

Handler = Callable[[Call], Awaitable[Answer | Streamed]]
Routes = Mapping[str, Mapping[str, Handler]]
"""Path -> method -> what answers."""

HEADERS = {"vary": "Origin"}
"""Of every response, as any origin is allowed."""


class Refused(Exception):
    """The request cannot be served, and this is the answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body)
        self.answer = answer


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A JSON answer."""
    return Answer(status, in_json(value), headers={**(headers or {}), **HEADERS})


def handler(routes: Routes, call: Call) -> Handler | Answer:
    """What answers the call, or that nothing does."""
    methods = routes.get(call.path)
    if methods is None:
        return answer({"detail": "Not Found"}, 404)
    if call.method not in methods:
        return answer({"detail": "Method Not Allowed"}, 405, {"allow": ", ".join(methods)})
    return methods[call.method]


async def until_ended(pieces: AsyncGenerator[bytes, None], ended: Callable[[], None]) -> AsyncGenerator[bytes, None]:
    """The same pieces; `ended` is called after the last one, or when the client hangs up."""
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece
    finally:
        ended()
