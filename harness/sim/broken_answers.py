"""What stands between an application and its client while an answer goes wrong, one class for each way."""

from __future__ import annotations

import asyncio
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Any

import orjson

from harness.sim.stream_events import (
    DONE,
    Payload,
    event_with,
    events_of,
    is_last_output,
    is_output,
    is_role_alone,
    merged,
    payload_of,
    role_alone,
    role_of,
    with_role,
    without_usage,
)
from harness.sim.web import Send

Message = dict[str, Any]


async def refuse(send: Send, status: int, words: str, headers: Mapping[str, str]) -> None:
    """A whole error response in the shape of OpenAI's."""
    body = orjson.dumps({"error": {"message": words, "type": "error", "param": None, "code": status}})
    named = {"content-length": str(len(body)), "content-type": "application/json", **headers}
    pairs = [(name.encode(), value.encode()) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body, "more_body": False})


class Broken:
    """Passes on what the application sends: event by event if it is a stream, as one body if it is not."""

    def __init__(self, send: Send, scope: Mapping[str, Any], value: float) -> None:
        self.send = send
        self.scope = scope
        self.value = value
        self._start: Message = {}
        self._body = b""
        self._is_stream = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            self._is_stream = any(value.startswith(b"text/event-stream") for _, value in message["headers"])
            if self._is_stream:
                await self.send(message)
        elif self._is_stream:
            for event in events_of(message["body"]):
                async for changed in self.events(event, payload_of(event)):
                    await self.put(changed)
            if not message["more_body"]:
                async for event in self.rest():
                    await self.put(event)
                await self.end()
        else:
            self._body += message["body"]
            if not message["more_body"]:
                await self.plain(self._body)

    async def events(self, event: bytes, payload: Payload | None) -> AsyncIterator[bytes]:
        """What goes out in the place of an event."""
        yield event

    async def rest(self) -> AsyncIterator[bytes]:
        """What goes out when the application has sent all."""
        nothing: tuple[bytes, ...] = ()
        for event in nothing:
            yield event

    async def plain(self, body: bytes) -> None:
        """Send a body that is no stream."""
        length = str(len(body)).encode()
        headers = [(name, length if name == b"content-length" else value) for name, value in self._start["headers"]]
        await self.send({**self._start, "headers": headers})
        await self.put(body)
        await self.end()

    async def put(self, piece: bytes) -> None:
        await self.send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def cut(self) -> None:
        """Whatever the application goes on to send is lost: it is cancelled, as at every end of a response."""
        await asyncio.get_running_loop().create_future()


class Interrupted(Broken, ABC):
    """Something happens after `value` events with output, or amid a body that is no stream."""

    def __init__(self, send: Send, scope: Mapping[str, Any], value: float) -> None:
        super().__init__(send, scope, value)
        self._outputs = 0

    async def events(self, event: bytes, payload: Payload | None) -> AsyncIterator[bytes]:
        if self._outputs >= self.value and is_output(payload):
            await self.interrupt(event)
        self._outputs += is_output(payload)
        yield event

    @abstractmethod
    async def interrupt(self, event: bytes) -> None:
        """What happens instead of `event`, or before it."""


class Stalled(Interrupted):
    """`value` seconds of silence after the third event with output."""

    def __init__(self, send: Send, scope: Mapping[str, Any], value: float) -> None:
        super().__init__(send, scope, 3)
        self._silence_s = value

    async def interrupt(self, event: bytes) -> None:
        await asyncio.sleep(self._silence_s)
        self._silence_s = 0.0

    async def plain(self, body: bytes) -> None:
        half = len(body) // 2
        await self.send(self._start)
        await self.put(body[:half])
        await asyncio.sleep(self._silence_s)
        await self.put(body[half:])
        await self.end()


class Reset(Interrupted):
    """The connection ends with a RST."""

    async def interrupt(self, event: bytes) -> None:
        transport = self.scope["extensions"]["connection"].transport
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
        await self.cut()

    async def plain(self, body: bytes) -> None:
        await self.send(self._start)
        await self.put(body[: len(body) // 2])
        await self.interrupt(b"")


class Failed(Interrupted):
    """An error in the place of an event, and the end of the stream."""

    async def interrupt(self, event: bytes) -> None:
        error = {"message": "The engine died", "type": "InternalServerError", "param": None, "code": 500}
        await self.put(event_with({"error": error}))
        await self.end()
        await self.cut()

    async def plain(self, body: bytes) -> None:
        await refuse(self.send, 500, "The engine died", {})


class Truncated(Interrupted):
    """Half of an event, and the end of the stream, which is well-formed HTTP."""

    async def interrupt(self, event: bytes) -> None:
        await self.put(event[: len(event) // 2] + b"\n\n")
        await self.end()
        await self.cut()

    async def plain(self, body: bytes) -> None:
        await super().plain(body[: len(body) // 2])


class WithoutDone(Broken):
    async def events(self, event: bytes, payload: Payload | None) -> AsyncIterator[bytes]:
        if event != DONE:
            yield event


class WithoutUsage(Broken):
    async def events(self, event: bytes, payload: Payload | None) -> AsyncIterator[bytes]:
        if payload is None:
            yield event
        elif rest := without_usage(payload):
            yield event_with(rest)

    async def plain(self, body: bytes) -> None:
        payload = orjson.loads(body)
        await super().plain(orjson.dumps(without_usage(payload)) if isinstance(payload, dict) else body)


class ManyTokens(Broken):
    """`value` events with output become one."""

    def __init__(self, send: Send, scope: Mapping[str, Any], value: float) -> None:
        super().__init__(send, scope, value)
        self._held: list[Payload] = []

    async def events(self, event: bytes, payload: Payload | None) -> AsyncIterator[bytes]:
        if payload is not None and is_output(payload):
            self._held.append(payload)
            if len(self._held) >= self.value or is_last_output(payload):
                yield self._together()
            return
        if self._held:
            yield self._together()
        yield event

    async def rest(self) -> AsyncIterator[bytes]:
        if self._held:
            yield self._together()

    def _together(self) -> bytes:
        together = event_with(merged(self._held))
        self._held = []
        return together


class RoleFirst(Broken):
    """A chunk with the role alone stands before a chat's first text, whether the engine sends one or not."""

    def __init__(self, send: Send, scope: Mapping[str, Any], value: float) -> None:
        super().__init__(send, scope, value)
        self._had_role = not scope["path"].endswith("/chat/completions")

    async def events(self, event: bytes, payload: Payload | None) -> AsyncIterator[bytes]:
        if payload is not None and is_output(payload) and not self._had_role:
            yield event_with(role_alone(payload, "assistant"))
            self._had_role = True
        self._had_role = self._had_role or is_role_alone(payload)
        yield event


class NoRoleFirst(Broken):
    """The role comes with a chat's first text."""

    def __init__(self, send: Send, scope: Mapping[str, Any], value: float) -> None:
        super().__init__(send, scope, value)
        self._role: str | None = None

    async def events(self, event: bytes, payload: Payload | None) -> AsyncIterator[bytes]:
        if payload is not None and is_role_alone(payload):
            self._role = role_of(payload)
        elif payload is not None and self._role is not None and is_output(payload):
            yield event_with(with_role(payload, self._role))
            self._role = None
        else:
            yield event


class BrokenPage(Broken):
    """A metrics page that ends amid a line."""

    async def plain(self, body: bytes) -> None:
        lines = body.rstrip().rsplit(b"\n", 1)
        await super().plain(b"\n".join([*lines[:-1], lines[-1].rsplit(b" ", 1)[0]]))


BREAKERS: Mapping[str, Callable[[Send, Mapping[str, Any], float], Send]] = MappingProxyType(
    {
        "stall": Stalled,
        "reset": Reset,
        "error-event": Failed,
        "truncated-json": Truncated,
        "no-done": WithoutDone,
        "no-usage": WithoutUsage,
        "tokens-per-chunk": ManyTokens,
        "role-first": RoleFirst,
        "no-role-first": NoRoleFirst,
        "broken-metrics": BrokenPage,
    }
)
"""By kind of fault."""
