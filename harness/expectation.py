"""What a key of a pydantic model expects, in words, read from the model's JSON Schema."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
Key = str | int
"""A key of a mapping, or an index of a list."""

_PLAIN = {"boolean": "true or false", "array": "a list", "object": "a mapping", "null": "nothing"}


def expectation(root: Schema, keys: Sequence[Key], tags: Collection[Key] = ()) -> str:
    """What may stand at `keys`, such as "a whole number of at least 1"; "another value" if the schema does not say.

    `tags` are the values of discriminators on the way, which choose one branch of a union.
    """
    choices = [text for schema in _schemas_at(root, keys, tags) if (text := _words(schema)) != "nothing"]
    return " or ".join(dict.fromkeys(choices)) or "another value"


def known_keys(root: Schema, keys: Sequence[Key], tags: Collection[Key] = ()) -> list[str]:
    """Names that the mapping at `keys` may have; for `tags` see `expectation`."""
    return list(
        dict.fromkeys(name for schema in _schemas_at(root, keys, tags) for name in schema.get("properties", {}))
    )


def suggestion(word: str, known: Sequence[str]) -> str:
    """A hint to append to "unknown ...": the nearest known word, or else all of them."""
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"known here: {', '.join(known)}" if known else "none is known here"


def _schemas_at(root: Schema, keys: Sequence[Key], tags: Collection[Key]) -> list[Schema]:
    """The schemas, each without references and alternatives, that a value at `keys` may follow."""
    schemas = _tagged(list(_alternatives(root, root)), tags)
    for key in keys:
        below = [
            alternative
            for schema in schemas
            for child in _children(schema, key)
            for alternative in _alternatives(root, child)
        ]
        schemas = _tagged(below, tags)
    return schemas


def _tagged(schemas: list[Schema], tags: Collection[Key]) -> list[Schema]:
    """Only the branches of a discriminated union that carry one of `tags`, if any does."""
    chosen = [
        schema
        for schema in schemas
        if any(child.get("const") in tags for child in schema.get("properties", {}).values())
    ]
    return chosen or schemas


def _alternatives(root: Schema, schema: Schema) -> Iterator[Schema]:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        yield from _alternatives(root, root["$defs"][name])
    elif branches := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        for branch in branches:
            yield from _alternatives(root, branch)
    else:
        yield schema


def _children(schema: Schema, key: Key) -> Iterator[Schema]:
    if isinstance(key, int):
        fixed = schema.get("prefixItems", [])
        if key < len(fixed):
            yield fixed[key]
        elif isinstance(schema.get("items"), Mapping):
            yield schema["items"]
    elif key in schema.get("properties", {}):
        yield schema["properties"][key]
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield schema["additionalProperties"]


def _words(schema: Schema) -> str:
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        values = [str(value) for value in schema["enum"]]
        return values[0] if len(values) == 1 else f"one of {', '.join(values)}"
    kind = schema.get("type", "")
    if kind in ("integer", "number"):
        return ("a whole number" if kind == "integer" else "a number") + _range(schema)
    if kind == "string":
        return _text(schema)
    if kind == "array" and schema.get("minItems", 0) > 0:
        return f"a list of at least {schema['minItems']}"
    return _PLAIN.get(kind, "another value")


def _range(schema: Schema) -> str:
    parts = []
    if "minimum" in schema:
        parts.append(f"of at least {schema['minimum']:g}")
    if "exclusiveMinimum" in schema:
        parts.append(f"above {schema['exclusiveMinimum']:g}")
    if "maximum" in schema:
        parts.append(f"of at most {schema['maximum']:g}")
    if "exclusiveMaximum" in schema:
        parts.append(f"below {schema['exclusiveMaximum']:g}")
    return f" {' and '.join(parts)}" if parts else ""


def _text(schema: Schema) -> str:
    if "pattern" in schema:
        return f"text that matches {schema['pattern']}"
    if schema.get("minLength", 0) > 0:
        return "text that is not empty"
    return "text"
