"""Requests out of a log in JSON Lines, or two prompts out of two files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from harness.errors import InputError
from harness.lint.segments import PROMPT, ChatPrompt, chat_prompt
from harness.traces.entry import BadEntry, Entry, optional_text, shown
from harness.traces.lines import numbered_lines, open_trace, parse_json
from harness.traces.request import Skipped

WRAPPERS = ("request", "body")
"""Keys of a log's line under which the request may stand, as an object or as its JSON text."""
_SEPARATE = ("model", "cache_salt")
"""Only requests that agree in these share a cache."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a log."""

    source: str
    """For people: `line 3`, or the name of a prompt's file."""
    prompt: ChatPrompt
    entry: object
    """The whole line, with whatever stands around the request."""
    wrapper: str | None = None
    """Which of `WRAPPERS` holds the request in `entry`; None: it is the entry itself."""
    raw: bytes | None = None
    """The line as it was written; None: it was no line."""
    cache: tuple[str | None, ...] = ()
    """Requests with other values share nothing with it: its model and its cache salt."""

    def line(self, prompt: ChatPrompt) -> bytes:
        """The request's line with this prompt in place of its own; to the byte as it was if that is the same."""
        if self.raw is not None and prompt.segments == self.prompt.segments:
            return self.raw
        body = prompt.to_body()
        if self.wrapper is None:
            return orjson.dumps(body["messages"] if isinstance(self.entry, list) else body)
        assert isinstance(self.entry, dict)
        as_text = isinstance(self.entry[self.wrapper], str)
        return orjson.dumps({**self.entry, self.wrapper: orjson.dumps(body).decode() if as_text else body})


@dataclass(frozen=True, slots=True)
class Log:
    """What is to be looked at, in the order in which it was sent."""

    name: str
    requests: Sequence[Request]
    """One at least."""
    skipped: Skipped


def read_log(path: Path, skip_bad: bool = False) -> Log:
    """The requests of a JSON Lines file. Raises InputError, which names the line."""
    requests: list[Request] = []
    bad, first = 0, None
    for number, line in numbered_lines(path):
        try:
            requests.append(replace(_request(parse_json(line), f"line {number}"), raw=line.rstrip(b"\r\n")))
        except BadEntry as problem:
            place = f"line {number}: {problem}"
            if not skip_bad:
                raise InputError(f"{path}, {place}; correct it, or leave it out with --skip-bad-lines") from None
            bad, first = bad + 1, first or place
    if not requests:
        raise InputError(
            f"{path}: none of its {bad} lines can be used; the first: {first}"
            if first
            else f"{path}: holds no requests; expected one a line, as JSON with messages"
        )
    return Log(path.name, requests, Skipped(bad, first))


def read_pair(first: Path, second: Path) -> Log:
    """Two prompts, each a request as JSON or any other text, which is the prompt itself. Raises InputError."""
    names = (first.name, second.name) if first.name != second.name else (str(first), str(second))
    one, other = (_prompt(path, name) for path, name in zip((first, second), names, strict=True))
    for key, value, other_value in zip(_SEPARATE, one.cache, other.cache, strict=True):
        if value is not None and other_value is not None and value != other_value:
            raise InputError(
                f"{first} and {second} share no cache: {key} is {value} in one, and {other_value} in the other"
            )
    if (PROMPT in one.prompt.body) != (PROMPT in other.prompt.body):
        raise InputError(f"one of {first} and {second} is a chat, the other a text; give two of a kind")
    requests = [replace(request, cache=()) for request in (one, other)]
    return Log(" and ".join(names), requests, Skipped(0, None))


def _prompt(path: Path, name: str) -> Request:
    with open_trace(path) as file:
        content = file.read()
    try:
        text = content.decode()
    except UnicodeDecodeError as problem:
        raise InputError(f"{path}: not UTF-8 at byte {problem.start}; expected a text or a JSON request") from None
    if not text.strip():
        raise InputError(f"{path}: is empty; expected a prompt")
    try:
        value = parse_json(content)
    except BadEntry as problem:
        if path.suffix in (".json", ".jsonl"):
            raise InputError(f"{path}: {problem}; two files are two prompts, each one JSON object or a text") from None
        value = None
    try:
        if isinstance(value, list) or (isinstance(value, dict) and {*WRAPPERS, "messages", PROMPT} & set(value)):
            return _request(value, name)
        return _request({PROMPT: text}, name)
    except BadEntry as problem:
        raise InputError(f"{path}: {problem}") from None


def _request(value: object, source: str) -> Request:
    """A body, a list of messages, or an object that holds a body under one of `WRAPPERS`. Raises BadEntry."""
    if isinstance(value, list):
        return Request(source, chat_prompt({"messages": value}), value, cache=(None,) * len(_SEPARATE))
    if not isinstance(value, dict):
        raise BadEntry(f"expected a JSON object, found {shown(value)}")
    wrapper = None if "messages" in value or PROMPT in value else _wrapper(value)
    body = value if wrapper is None else _wrapped(value[wrapper], wrapper)
    if "messages" not in body and not isinstance(body.get(PROMPT), str):
        raise BadEntry(
            "the prompt is no text" if PROMPT in body else "the key messages is missing, and there is no prompt"
        )
    if body.get(PROMPT) == "":
        raise BadEntry("the prompt is empty")
    cache = tuple(optional_text(body, key) for key in _SEPARATE)
    return Request(source, chat_prompt(body), value, wrapper, cache=cache)


def _wrapper(entry: Entry) -> str:
    for key in WRAPPERS:
        if entry.get(key) is not None:
            return key
    raise BadEntry(f"the key messages is missing, and there is no {' or '.join(WRAPPERS)} that could have it")


def _wrapped(value: object, key: str) -> Entry:
    if isinstance(value, str):
        try:
            value = parse_json(value.encode())
        except BadEntry as problem:
            raise BadEntry(f"{key}: {problem}") from None
    if not isinstance(value, dict):
        raise BadEntry(f"{key} is {shown(value)}; expected an object with messages")
    return value
