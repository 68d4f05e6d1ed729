"""The events of a streamed answer, taken apart and put together again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

_DATA = b"data: "
DONE = b"data: [DONE]\n\n"

Payload = dict[str, Any]


def events_of(piece: bytes) -> Iterator[bytes]:
    """The events of a piece of the body, each with the blank line that ends it."""
    *whole, rest = piece.split(b"\n\n")
    yield from (event + b"\n\n" for event in whole)
    if rest:
        yield rest


def payload_of(event: bytes) -> Payload | None:
    """The JSON object of an event; None of `[DONE]`, of a comment, and of what is no object."""
    if not event.startswith(_DATA + b"{"):
        return None
    payload: Payload = orjson.loads(event[len(_DATA) :])
    return payload


def event_with(payload: Payload) -> bytes:
    return _DATA + orjson.dumps(payload) + b"\n\n"


def is_output(payload: Payload | None) -> bool:
    """Whether it carries text of the answer."""
    return payload is not None and bool(_place(payload)[1])


def is_last_output(payload: Payload) -> bool:
    """Whether the answer ends with it."""
    choices = payload.get("choices")
    return bool(choices[0].get("finish_reason") if choices else payload.get("stop"))


def is_role_alone(payload: Payload | None) -> bool:
    return payload is not None and "role" in _delta(payload) and not is_output(payload) and not is_last_output(payload)


def merged(payloads: list[Payload]) -> Payload:
    """One payload with the text of all of them; what else it says is what the last one says."""
    last = payloads[-1]
    holder, _ = _place(last)
    holder["content" if "content" in holder else "text"] = "".join([_place(payload)[1] for payload in payloads])
    if isinstance(ids := _ids_holder(last).get("token_ids"), list):
        before = [token for payload in payloads[:-1] for token in _ids_holder(payload).get("token_ids") or []]
        _ids_holder(last)["token_ids"] = before + ids
    return last


def with_role(payload: Payload, role: str) -> Payload:
    """A chat's payload that says whose the text is, too."""
    delta = payload["choices"][0]["delta"]
    payload["choices"][0]["delta"] = {"role": role, **delta}
    return payload


def role_of(payload: Payload) -> str | None:
    role: str | None = _delta(payload).get("role")
    return role


def role_alone(payload: Payload, role: str) -> Payload:
    """A chat's payload like another one, but with the role in the place of the text."""
    choice = {**payload["choices"][0], "delta": {"role": role, "content": ""}, "finish_reason": None}
    return {**{name: value for name, value in payload.items() if name != "usage"}, "choices": [choice]}


def without_usage(payload: Payload) -> Payload | None:
    """None: it had nothing else to say. llama.cpp's timings count tokens too, so they go as well."""
    rest = {name: value for name, value in payload.items() if name not in ("usage", "timings")}
    return None if payload.get("usage") and payload.get("choices") == [] else rest


def _delta(payload: Payload) -> Payload:
    choices = payload.get("choices")
    delta: Payload = (choices[0].get("delta") if choices else None) or {}
    return delta


def _place(payload: Payload) -> tuple[Payload, str]:
    """Where the text stands, and the text: of a chat, of a completion, of llama.cpp's own completion."""
    choices = payload.get("choices")
    holder: Payload = payload if choices is None else (choices[0] if choices else {})
    holder = holder.get("delta", holder)
    return holder, holder.get("content") or holder.get("text") or ""


def _ids_holder(payload: Payload) -> Payload:
    choices = payload.get("choices")
    holder: Payload = choices[0] if choices else payload
    return holder
