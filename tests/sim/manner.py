"""A manner asked without a server, on virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from harness.sim.web import Answer, Call, Manner, Streamed

T = TypeVar("T")


def run(job: Callable[[], Awaitable[T]]) -> T:
    async def inside() -> T:
        return await job()

    return asyncio.run(inside())


async def say(
    manner: Manner,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
) -> Answer | Streamed:
    """A GET, or with a body a POST; `body`: bytes, or what becomes JSON."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    return await manner.answer(Call("GET" if body is None else "POST", path, query or {}, headers or {}, data))


async def answer(manner: Manner, path: str, body: Any = None, **more: Any) -> Answer:
    said = await say(manner, path, body, **more)
    assert isinstance(said, Answer)
    return said


async def stream(manner: Manner, path: str, body: Any) -> Streamed:
    said = await say(manner, path, body)
    assert isinstance(said, Streamed)
    return said


async def events(manner: Manner, path: str, body: Any) -> list[Any]:
    """All events of a stream; the last is "[DONE]"."""
    return [event(piece) async for piece in (await stream(manner, path, body)).pieces]


def event(piece: bytes) -> Any:
    assert piece.startswith(b"data: ")
    assert piece.endswith(b"\n\n")
    data = piece[6:-2]
    return data.decode() if data == b"[DONE]" else json.loads(data)


async def page(manner: Manner) -> str:
    return (await answer(manner, "/metrics")).body.decode()
