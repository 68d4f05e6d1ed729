"""What llama.cpp's server refuses, in its own words."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from harness.sim.web import Answer

HEADERS = {"Access-Control-Allow-Origin": ""}
"""Of every response, beside what the server itself adds."""
JSON = "application/json; charset=utf-8"


class Refusal(Exception):
    """A request that is answered with an error; `more` are further fields of it."""

    def __init__(self, message: str, kind: str = "invalid_request_error", status: int = 400, **more: int) -> None:
        super().__init__(message)
        self.status = status
        self.error: dict[str, Any] = {"code": status, "message": message, "type": kind, **more}

    def answer(self) -> Answer:
        return _answer(self.status, self.error)


def _answer(status: int, error: dict[str, Any]) -> Answer:
    # It keeps a connection only after what went well.
    return Answer(status, orjson.dumps({"error": error}), JSON, {**HEADERS, "Connection": "close"})


NOT_FOUND = _answer(404, {"message": "File Not Found", "type": "not_found_error", "code": 404})
"""Of unknown paths, and of known ones with another method."""
UNAUTHORIZED = _answer(401, {"message": "Invalid API Key", "type": "authentication_error", "code": 401})


def not_supported(message: str) -> Refusal:
    return Refusal(message, "not_supported_error", 501)


def too_long(prompt_tokens: int, context_tokens: int) -> Refusal:
    return Refusal(
        f"request ({prompt_tokens} tokens) exceeds the available context size ({context_tokens} tokens), try "
        "increasing it",
        "exceed_context_size_error",
        n_prompt_tokens=prompt_tokens,
        n_ctx=context_tokens,
    )


def json_type(value: object) -> str:
    """As nlohmann's JSON library calls it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {int: "number", float: "number", str: "string", list: "array", dict: "object"}[type(value)]


def wrong_type(value: object, wanted: str, field: str | None = None) -> Refusal:
    where = "" if field is None else f"Field '{field}': "
    message = f"[json.exception.type_error.302] type must be {wanted}, but is {json_type(value)}"
    return Refusal(f"{where}{message}")


def missing(key: str) -> Refusal:
    return Refusal(f"[json.exception.out_of_range.403] key '{key}' not found")


def parsed(body: bytes) -> Any:
    """The JSON value. Raises Refusal; its words are the real ones for bodies that are empty or break off."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Refusal(f"[json.exception.parse_error.101] {_parse_error(body.decode(errors='replace'))}") from None


def _parse_error(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        line, column = text.count("\n", 0, error.pos) + 1, error.pos - text.rfind("\n", 0, error.pos)
        where = f"parse error at line {line}, column {column}"
        if not text:
            return (
                f"{where}: attempting to parse an empty input; check that your input string or stream contains the "
                "expected JSON"
            )
        if text[error.pos :].strip():
            last_read = text[: error.pos + 1]
            return f"{where}: syntax error while parsing value - invalid literal; last read: '{last_read}'"
        if "property name" in error.msg:
            return f"{where}: syntax error while parsing object key - unexpected end of input; expected string literal"
        if "',' delimiter" in error.msg:
            kind, closing = _innermost(text)
            return f"{where}: syntax error while parsing {kind} - unexpected end of input; expected '{closing}'"
    return f"{where}: syntax error while parsing value - unexpected end of input; expected '[', '{{', or a literal"


def _innermost(text: str) -> tuple[str, str]:
    """What is open at the end of the text, and what would close it."""
    open_: list[str] = []
    for bracket in re.sub(r'"(\\.|[^"\\])*"', "", text):
        if bracket in "[{":
            open_.append(bracket)
        elif bracket in "]}":
            open_.pop()
    return ("object", "}") if open_[-1] == "{" else ("array", "]")
