"""What a real server answered and what a simulated one answers, held against each other field by field."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

FIXTURES = Path(__file__).parents[1] / "fixtures"

What = Literal["missing", "extra", "order", "length", "type", "value"]


@dataclass(frozen=True)
class Response:
    """One response, its framing taken off."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes

    @cached_property
    def events(self) -> list[Any]:
        """Of a stream: each event's JSON value, "[DONE]", and comments as {"comment": text}."""
        return [_event(block) for block in self.body.decode().split("\n\n") if block.strip()]

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def content(self) -> Any:
        """What its body holds: the events of a stream, the value of a JSON body, else the text."""
        if self.is_stream:
            return self.events
        try:
            return json.loads(self.body)
        except ValueError:
            return self.body.decode()


@dataclass(frozen=True)
class Difference:
    where: str
    """Such as status, headers.content-type, body[].choices[].delta.content; all items of a list have one name."""
    what: What
    recorded: Any
    simulated: Any

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: recorded {self.recorded!r}, simulated {self.simulated!r}"


@dataclass(frozen=True)
class Allowed:
    """Differences that must be, or that do no harm."""

    where: str
    """A regular expression for the whole of `Difference.where`."""
    why: str
    what: tuple[What, ...] = ("value",)

    def covers(self, difference: Difference) -> bool:
        return difference.what in self.what and re.fullmatch(self.where, difference.where) is not None


def recorded(name: str) -> Response:
    """The recorded response `name`, such as "mlx-lm/chat_stream_cold"."""
    head, _, body = (FIXTURES / f"{name}.response.http").read_bytes().partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join(_chunks(body))
    return Response(int(status.split()[1]), headers, body)


def recorded_body(name: str) -> Any:
    """A body that was recorded alone, `name` with its .body.json or .body.txt."""
    text = (FIXTURES / name).read_text()
    return json.loads(text) if name.endswith(".json") else text


def ask(url: str, path: str, body: Any = None, method: str | None = None, **headers: str) -> Response:
    """Send a request on a connection of its own, as the recorder did. `body`: bytes, or what becomes JSON."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Connection": "close", **({} if data is None else {"Content-Type": "application/json"}), **headers}
    try:
        connection.request(method or ("GET" if data is None else "POST"), path, data, sent)
        answer = connection.getresponse()
        named = {key.lower(): value for key, value in answer.getheaders()}
        return Response(answer.status, named, answer.read())
    finally:
        connection.close()


def compare(real: Response, simulated: Response) -> list[Difference]:
    """Status, headers and body."""
    found = [*differences(real.status, simulated.status, "status")]
    found += differences(dict(sorted(real.headers.items())), dict(sorted(simulated.headers.items())), "headers")
    return [*found, *differences(real.content, simulated.content, "body")]


def differences(real: Any, simulated: Any, where: str) -> Iterator[Difference]:
    """Whatever is not equal in two JSON values, with the order of keys."""
    if type(real) is not type(simulated):
        yield Difference(where, "type", real, simulated)
    elif isinstance(real, dict):
        yield from _of_objects(real, simulated, where)
    elif isinstance(real, list):
        if len(real) != len(simulated):
            yield Difference(f"{where}[]", "length", len(real), len(simulated))
        for one, other in zip(real, simulated, strict=False):
            yield from differences(one, other, f"{where}[]")
    elif real != simulated:
        yield Difference(where, "value", real, simulated)


def unexplained(found: Iterable[Difference], allowed: Sequence[Allowed]) -> list[str]:
    """Those that no entry of the table covers, in words."""
    return [str(difference) for difference in found if not any(one.covers(difference) for one in allowed)]


def _of_objects(real: dict[str, Any], simulated: dict[str, Any], where: str) -> Iterator[Difference]:
    for key in real:
        if key not in simulated:
            yield Difference(f"{where}.{key}", "missing", real[key], None)
    for key in simulated:
        if key not in real:
            yield Difference(f"{where}.{key}", "extra", None, simulated[key])
    common = [key for key in real if key in simulated]
    order = [key for key in simulated if key in real]
    if common != order:
        yield Difference(where, "order", common, order)
    for key in common:
        yield from differences(real[key], simulated[key], f"{where}.{key}")


def _event(block: str) -> Any:
    if block.startswith(":"):
        return {"comment": block[1:].strip()}
    assert block.startswith("data: "), block
    data = block.removeprefix("data: ").strip()
    return data if data == "[DONE]" else json.loads(data)


def _chunks(framed: bytes) -> Iterator[bytes]:
    while framed:
        size, _, framed = framed.partition(b"\r\n")
        length = int(size, 16)
        yield framed[:length]
        framed = framed[length + 2 :]
