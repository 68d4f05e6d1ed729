"""HTTP as the simulated engines see it, without a server: the ASGI application, called by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import pytest

from harness.sim.web import Answer, Call, Streamed, application

HANG_UP = {"type": "http.disconnect"}


class Scripted:
    """A manner that gives one answer, and remembers what it was asked."""

    name = "vllm"

    def __init__(self, answer: Answer | Streamed | None = None) -> None:
        self.said = answer
        self.calls: list[Call] = []

    async def answer(self, call: Call) -> Answer | Streamed:
        self.calls.append(call)
        if self.said is None:
            await asyncio.Event().wait()
        assert self.said is not None
        return self.said


class Client:
    """The other end: what it sends, and what it got."""

    def __init__(self, *messages: Mapping[str, Any]) -> None:
        self.messages = list(messages)
        self.got: list[dict[str, Any]] = []
        self.hung_up = asyncio.Event()

    async def receive(self) -> Mapping[str, Any]:
        if self.messages:
            return self.messages.pop(0)
        await self.hung_up.wait()
        return HANG_UP

    async def send(self, message: dict[str, Any]) -> None:
        self.got.append(message)


def part(body: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def scope(path: str = "/", query: bytes = b"", headers: Sequence[tuple[bytes, bytes]] = ()) -> dict[str, Any]:
    return {"type": "http", "method": "POST", "path": path, "query_string": query, "headers": list(headers)}


async def serve(manner: Scripted, client: Client, asked: dict[str, Any] | None = None) -> None:
    await application(manner)(asked or scope(), client.receive, client.send)


def test_a_call_is_read_to_its_end() -> None:
    manner = Scripted(Answer(200, b""))

    async def run() -> None:
        client = Client(part(b"a", more=True), part(b"b", more=True), part(b"c"))
        await serve(manner, client, scope("/x", b"timeout=5&empty=", [(b"x-request-id", b"me")]))

    asyncio.run(run())
    assert manner.calls == [Call("POST", "/x", {"timeout": "5", "empty": ""}, {"x-request-id": "me"}, b"abc")]


def test_a_whole_answer_has_a_length_and_its_own_headers() -> None:
    async def run() -> list[dict[str, Any]]:
        client = Client(part(b""))
        await serve(Scripted(Answer(404, b"{}", headers={"allow": "GET"})), client)
        return client.got

    start, body = asyncio.run(run())
    assert start["status"] == 404
    headers = [(b"content-length", b"2"), (b"content-type", b"application/json"), (b"allow", b"GET")]
    assert start["headers"] == headers
    assert (body["body"], body["more_body"]) == (b"{}", False)


def test_a_stream_goes_out_piece_by_piece() -> None:
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"one"
        yield b"two"

    async def run() -> list[dict[str, Any]]:
        client = Client(part(b""))
        await serve(Scripted(Streamed(pieces())), client)
        return client.got

    start, *bodies = asyncio.run(run())
    assert start["status"] == 200
    assert start["headers"] == [(b"content-type", b"text/event-stream; charset=utf-8")]
    assert [(one["body"], one["more_body"]) for one in bodies] == [(b"one", True), (b"two", True), (b"", False)]


def test_a_stream_is_given_up_when_the_client_hangs_up() -> None:
    given_up: list[bool] = []

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            yield b"one"
            await asyncio.Event().wait()
        finally:
            given_up.append(True)

    async def run() -> list[dict[str, Any]]:
        client = Client(part(b""))
        serving = asyncio.create_task(serve(Scripted(Streamed(pieces())), client))
        while len(client.got) < 2:
            await asyncio.sleep(0)
        assert not given_up
        client.hung_up.set()
        await serving
        return client.got

    got = asyncio.run(run())
    assert given_up == [True]
    assert [one.get("body") for one in got] == [None, b"one"]


def test_an_answer_that_nobody_waits_for_is_not_made() -> None:
    async def run() -> list[dict[str, Any]]:
        client = Client(part(b""))
        client.hung_up.set()
        await serve(Scripted(), client)
        return client.got

    assert asyncio.run(run()) == []


def test_half_a_request_is_no_call() -> None:
    manner = Scripted(Answer(200, b""))

    async def run() -> None:
        await serve(manner, Client(part(b"half", more=True), HANG_UP))

    asyncio.run(run())
    assert manner.calls == []


def test_whoever_stops_the_server_stops_its_requests() -> None:
    async def run() -> None:
        serving = asyncio.create_task(serve(Scripted(), Client(part(b""))))
        await asyncio.sleep(0)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving

    asyncio.run(run())


def test_only_http_is_served() -> None:
    with pytest.raises(ValueError, match="not lifespan"):
        asyncio.run(serve(Scripted(), Client(), {"type": "lifespan"}))
