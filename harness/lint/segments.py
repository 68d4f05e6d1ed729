"""A prompt as the pieces of text that it is made of, each with its place in the request's body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal

import orjson

from harness.traces.entry import BadEntry, Entry, entries_of, shown, text
from harness.traces.token_stream import ChatText, as_text

Path = tuple[str | int, ...]
"""Keys and numbers that lead to a place in the body, such as ("messages", 0, "content")."""
TOOLS, PROMPT = "tools", "prompt"


@dataclass(frozen=True, slots=True)
class Segment:
    """A tool, the content of a message or a part of it, a call of a tool without its arguments, or the arguments."""

    path: Path
    role: str
    """The message's; `TOOLS` for a tool, `PROMPT` for a prompt that is no chat."""
    text: str
    form: Literal["text", "json"] = "text"
    """How it stands in the body: as this text, or as the value that this JSON tells."""

    @property
    def owner(self) -> Path:
        """What it is a piece of: all tools, a message, a prompt."""
        return self.path[:1] if self.role in (TOOLS, PROMPT) else self.path[:2]

    @property
    def is_call(self) -> bool:
        """Whether it is a call without its arguments."""
        return len(self.path) == 4 and self.path[2] == "tool_calls"

    @property
    def is_content(self) -> bool:
        """Whether it is a text that a message, or the prompt, says."""
        return self.role == PROMPT or (self.role != TOOLS and self.path[2] == "content")

    @property
    def place(self) -> str:
        """For people: `tools[2] (find)`, `messages[0] (system)`, `messages[1] (user), content[2]`, `prompt`."""
        if self.role == PROMPT:
            return PROMPT
        name = tool_name(self.text) if self.role == TOOLS else self.role
        part = f", {self.path[2]}[{self.path[3]}]" if len(self.path) > 3 else ""
        return f"{self.path[0]}[{self.path[1]}] ({name}){part}"


Segments = tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """The segments of a request, from first to last as a template shows them: tools, then messages."""

    body: Mapping[str, Any]
    """The request as it came."""
    segments: Segments

    def arranged(self, segments: Segments) -> ChatPrompt:
        """The same request with other segments: of its own paths, none twice."""
        return replace(self, segments=segments)

    def chat(self) -> list[ChatText]:
        """What a template would show of it."""
        chat = []
        for (_, role), group in groupby(self.segments, key=lambda segment: (segment.owner, segment.role)):
            texts = [segment.text for segment in group]
            chat.append(ChatText(role, f"[{','.join(texts)}]" if role == TOOLS else "".join(texts)))
        return chat

    def to_body(self) -> dict[str, Any]:
        """The body with the text of these segments. Messages that lost all of their text are left out."""
        body = deepcopy(dict(self.body))
        original = segments_of(self.body)
        tools = [segment for segment in self.segments if segment.role == TOOLS]
        if tools != [segment for segment in original if segment.role == TOOLS]:
            body[TOOLS] = [orjson.loads(segment.text) for segment in tools]
        for segment in set(self.segments) - set(original) - set(tools):
            _put(body, segment)
        if lost := {segment.owner for segment in original} - {segment.owner for segment in self.segments}:
            body["messages"] = [
                message for number, message in enumerate(body["messages"]) if ("messages", number) not in lost
            ]
        return body


def chat_prompt(body: Entry) -> ChatPrompt:
    """Raises BadEntry for a body whose text cannot be told."""
    return ChatPrompt(body, segments_of(body))


def segments_of(body: Mapping[str, Any]) -> Segments:
    """Of a body with `messages`, or with a `prompt` that is a text. Raises BadEntry."""
    if "messages" not in body and isinstance(body.get(PROMPT), str):
        return (Segment((PROMPT,), PROMPT, body[PROMPT]),)
    entry = dict(body)
    messages = entries_of(entry, "messages")
    if not messages:
        raise BadEntry("messages is empty")
    tools = entries_of(entry, TOOLS) if entry.get(TOOLS) else []
    segments = [Segment((TOOLS, number), TOOLS, as_text(tool), "json") for number, tool in enumerate(tools)]
    for number, value in enumerate(messages):
        segments += _message(value, number)
    return tuple(segments)


@lru_cache(4096)
def tool_name(tool: str) -> str:
    """The name in the JSON of a tool; empty if it has none."""
    value = orjson.loads(tool)
    if not isinstance(value, dict):
        return ""
    function = value.get("function")
    name = (function if isinstance(function, dict) else value).get("name")
    return name if isinstance(name, str) else ""


def with_texts(segments: Segments, texts: Iterable[str]) -> Segments:
    """The same places with other texts."""
    return tuple(
        segment if segment.text == new else replace(segment, text=new)
        for segment, new in zip(segments, texts, strict=True)
    )


def without_emptied(before: Segments, after: Segments) -> Segments:
    """`after` without the messages that had a text in `before` and have none left."""
    emptied = {one.owner for one in before if one.text} - {one.owner for one in after if one.text}
    return tuple(one for one in after if one.owner not in emptied)


def _message(value: object, number: int) -> list[Segment]:
    place = f"messages[{number}]"
    if not isinstance(value, dict):
        raise BadEntry(f"{place} is {shown(value)}; expected an object with role and content")
    if "role" not in value:
        raise BadEntry(f"the key role is missing in {place}")
    path, role = ("messages", number), text(value, "role")
    segments = list(_content(value.get("content"), (*path, "content"), role, place))
    calls = entries_of(value, "tool_calls") if value.get("tool_calls") else []
    for call_number, call in enumerate(calls):
        segments += _call(call, (*path, "tool_calls", call_number), role, place)
    return segments


def _content(content: object, path: Path, role: str, place: str) -> Sequence[Segment]:
    if content is None or isinstance(content, str):
        return (Segment(path, role, content or ""),)
    if not isinstance(content, list):
        return (_part(content, (*path, "text"), role, place),)
    return [_part(part, (*path, number, "text"), role, place) for number, part in enumerate(content)]


def _part(part: object, path: Path, role: str, place: str) -> Segment:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return Segment(path, role, part["text"])
    raise BadEntry(f"{place}.content holds something that is not text, whose length cannot be told")


def _call(call: object, path: Path, role: str, place: str) -> list[Segment]:
    if not isinstance(call, dict):
        raise BadEntry(f"{place}.tool_calls holds {shown(call)}; expected objects")
    function = call.get("function")
    if not isinstance(function, dict) or "arguments" not in function:
        return [Segment(path, role, as_text(call), "json")]
    without = {**call, "function": {key: value for key, value in function.items() if key != "arguments"}}
    arguments, at = function["arguments"], (*path, "function", "arguments")
    if isinstance(arguments, str):
        return [Segment(path, role, as_text(without), "json"), Segment(at, role, arguments)]
    return [Segment(path, role, as_text(without), "json"), Segment(at, role, as_text(arguments), "json")]


def _put(body: dict[str, Any], segment: Segment) -> None:
    *way, last = segment.path
    holder: Any = body
    for key in way:
        holder = holder[key]
    value: Any = orjson.loads(segment.text) if segment.form == "json" else segment.text
    if segment.is_call and "arguments" in (holder[last].get("function") or {}):
        value["function"]["arguments"] = holder[last]["function"]["arguments"]
    holder[last] = value
