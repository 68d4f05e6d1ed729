"""HTTP as the simulated engines see it: calls, the answers to them, and the ASGI application that carries both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Mapping[str, Any], Receive, Send], Awaitable[None]]
"""ASGI 3, of which only the scope "http" is served: run it with `lifespan="off"`."""


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request, read to its end."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole response; its Content-Length is added."""

    status: int
    body: bytes
    content_type: str | None = "application/json"
    """None: no such header."""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Streamed:
    """A response whose body comes piece by piece, each sent as soon as it is there; status 200."""

    pieces: AsyncGenerator[bytes, None]
    """Closed when the client hangs up: what must be given up then stands in its `finally`, and is begun in it too, as
    a client may hang up before the first piece is asked for."""
    content_type: str = "text/event-stream; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


class Manner(Protocol):
    """How one engine talks."""

    name: str
    """As the adapter is called: vllm, sglang, llama-cpp or mlx-lm."""

    async def answer(self, call: Call) -> Answer | Streamed:
        """Whatever the engine would say, errors included. Cancelled when the client hangs up.

        The head of a `Streamed` goes out when this returns: an engine that keeps it back until its first token waits
        for that token in here.
        """
        ...


def application(manner: Manner, hears: Callable[[Call], None] | None = None) -> Application:
    """The ASGI application that reads each call whole, lets `hears` know, and writes what `manner` answers.

    It adds no header but Content-Type, Content-Length and those of the answer; Date and Server are the server's.
    """

    async def serve(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        call = await _read(scope, receive)
        if call is None:
            return
        if hears is not None:
            hears(call)
        serving = asyncio.current_task()
        assert serving is not None
        hang_up = asyncio.ensure_future(_hung_up(receive))
        hang_up.add_done_callback(lambda done: done.cancelled() or serving.cancel())
        try:
            answer = await manner.answer(call)
            if isinstance(answer, Answer):
                await _write(answer, send)
            else:
                await _stream(answer, send)
        except asyncio.CancelledError:
            if not hang_up.done():  # somebody else wants this to end
                raise
        finally:
            hang_up.cancel()

    return serve


async def _read(scope: Mapping[str, Any], receive: Receive) -> Call | None:
    """None: the client hung up before it had sent all of it."""
    if scope["type"] != "http":
        raise ValueError(f"only HTTP is served here, not {scope['type']}")
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return Call(
        method=scope["method"],
        path=scope["path"],
        query=dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)),
        headers={name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
        body=bytes(body),
    )


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _write(answer: Answer, send: Send) -> None:
    head = {"content-length": str(len(answer.body))}
    await send(_start(answer.status, answer.content_type, {**head, **answer.headers}))
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})


async def _stream(answer: Streamed, send: Send) -> None:
    try:
        await send(_start(200, answer.content_type, answer.headers))
        async for piece in answer.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        await answer.pieces.aclose()
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _start(status: int, content_type: str | None, headers: Mapping[str, str]) -> dict[str, Any]:
    named = {**({} if content_type is None else {"content-type": content_type}), **headers}
    # Content-Length stands before Content-Type in what the engines' own frameworks send.
    pairs = sorted(named.items(), key=lambda pair: pair[0] != "content-length")
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
    return {"type": "http.response.start", "status": status, "headers": encoded}
