"""YAML files read as pydantic models, with errors that name the file, the line, the key and what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import InputError
from harness.expectation import Key, Schema, expectation, known_keys, suggestion

T = TypeVar("T", bound=BaseModel)

MOST_PROBLEMS = 5
"""A message lists no more than this many problems."""

_TOLD_BY_SCHEMA = re.compile(
    "union_tag_.*|.*_type|.*_parsing|int_from_float|(greater|less)_than(_equal)?|literal_error|enum|.*too_short|.*_mismatch"
)
"""Errors (by pydantic's names for them) whose remedy the schema states best; the others are told in their own words."""


class Problem(NamedTuple):
    """One thing that is wrong. `line` counts from 1; `key` is a path such as `levels[0].tokens`, empty for the file."""

    line: int
    key: str
    text: str


def load_model(path: Path, model: type[T], error: type[InputError]) -> T:
    """Read the YAML mapping in `path` as a `model`.

    Raises `error` with one line for each of the first `MOST_PROBLEMS` problems.
    """
    node, loader = _parse(path, error)
    # Looked for first: the constructor keeps the last of two equal keys, and merges `<<` into the nodes.
    problems = sorted(_duplicate_keys(node))
    if not problems:
        data = _construct(path, node, loader, error)
        try:
            return model.model_validate(data)
        except ValidationError as invalid:
            problems = _validation_problems(invalid, node, model.model_json_schema())
    raise error("\n".join(_lines(path, problems)))


def _lines(path: Path, problems: Sequence[Problem]) -> Iterator[str]:
    for problem in problems[:MOST_PROBLEMS]:
        key = f", key {problem.key}" if problem.key else ""
        yield f"{path}, line {problem.line}{key}: {problem.text}"
    if len(problems) > MOST_PROBLEMS:
        yield f"{path}: {len(problems) - MOST_PROBLEMS} more like these"


# --- from the file to nodes and values ---------------------------------------------------------------


def _parse(path: Path, error: type[InputError]) -> tuple[yaml.MappingNode, yaml.SafeLoader]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise error(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise error(f"{path}: not a text file in UTF-8") from None
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror}") from None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as problem:
        raise error(_syntax_sentence(path, problem)) from None
    except yaml.YAMLError as problem:
        raise error(f"{path}: not valid YAML: {problem}") from None
    if isinstance(node, yaml.MappingNode):
        return node, loader
    found = "nothing" if node is None else _found(node)
    raise error(f"{path}: expected a mapping (lines of `key: value`), found {found}")


def _construct(path: Path, node: yaml.Node, loader: yaml.SafeLoader, error: type[InputError]) -> Any:
    try:
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as problem:
        raise error(_syntax_sentence(path, problem)) from None
    except ValueError as problem:  # what looks like a date but is none, such as 2026-02-30
        raise error(f"{path}: a value cannot be read: {problem}; put it in quotes if it is meant as text") from None


def _syntax_sentence(path: Path, problem: yaml.MarkedYAMLError) -> str:
    mark = problem.problem_mark or problem.context_mark
    where = f"{path}, line {mark.line + 1}" if mark else str(path)
    what = problem.problem or problem.context or "cannot be parsed"
    if "'\\t'" in what:
        return f"{where}: a tab cannot indent YAML; use spaces"
    return f"{where}: not valid YAML: {what}"


def _duplicate_keys(node: yaml.Node, keys: tuple[Key, ...] = (), inside: tuple[yaml.Node, ...] = ()) -> set[Problem]:
    if node in inside:  # an alias within its own anchor
        return set()
    problems: set[Problem] = set()
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for name, value in node.value:
            key, line = str(name.value), name.start_mark.line + 1
            if key in seen:
                problems.add(Problem(line, _path([*keys, key]), f"stands here again, after line {seen[key]}"))
            seen.setdefault(key, line)
            problems |= _duplicate_keys(value, (*keys, key), (*inside, node))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            problems |= _duplicate_keys(value, (*keys, index), (*inside, node))
    return problems


# --- from pydantic's errors to sentences -------------------------------------------------------------


def _validation_problems(invalid: ValidationError, root: yaml.Node, schema: Schema) -> list[Problem]:
    problems: dict[tuple[int, str], str] = {}
    for details in invalid.errors(include_url=False):
        if details["type"] == "default_factory_not_called":  # follows from another problem of the list
            continue
        problem = _problem(details, root, schema)
        # Several errors at one key are the alternatives of a union; the schema's words already name them all.
        problems.setdefault((problem.line, problem.key), problem.text)
    return sorted(Problem(line, key, text) for (line, key), text in problems.items())


def _problem(details: ErrorDetails, root: yaml.Node, schema: Schema) -> Problem:
    kind, location = details["type"], list(details["loc"])
    if kind.startswith("union_tag"):  # the error stands at the union, its cause at the discriminator
        location.append(details["ctx"]["discriminator"].strip("'"))
    absent = kind in ("missing", "union_tag_not_found")
    place = _locate(root, location[:-1] if absent else location)
    keys = [*place.keys, location[-1]] if absent else place.keys
    if absent:
        text = f"missing; expected {expectation(schema, keys, place.tags)}"
    elif kind == "extra_forbidden":
        text = f"unknown key; {suggestion(str(keys[-1]), known_keys(schema, keys[:-1], place.tags))}"
    elif "[key]" in place.tags:
        text = "this key is read as a number, date or truth value; put it in quotes"
    elif _TOLD_BY_SCHEMA.fullmatch(kind):
        text = _contrast(expectation(schema, keys, place.tags), place.node)
    else:
        text = sentence(details)
    return Problem(place.line, _path(keys), text)


def sentence(details: ErrorDetails) -> str:
    """An error in its own words: those of the validator that raised it, or else pydantic's."""
    cause = details.get("ctx", {}).get("error")
    return str(cause) if isinstance(cause, Exception) else details["msg"].replace("Input should be", "expected")


class _Place(NamedTuple):
    keys: list[Key]
    tags: list[Key]
    """Parts of a pydantic location that name branches of unions, and not keys of the file."""
    node: yaml.Node
    line: int


def _locate(root: yaml.Node, location: Sequence[Key]) -> _Place:
    place = _Place([], [], root, root.start_mark.line + 1)
    for part in location:
        found = _child(place.node, part)
        if found is None:
            place.tags.append(part)
        else:
            key = str(part) if isinstance(place.node, yaml.MappingNode) else part
            place = _Place([*place.keys, key], place.tags, *found)
    return place


def _child(node: yaml.Node, key: Key) -> tuple[yaml.Node, int] | None:
    """(value, line) of a key of a mapping or an index of a list."""
    if isinstance(node, yaml.MappingNode):
        for name, value in reversed(node.value):  # what a merge key `<<` brings in stands first, and is overridden
            if name.value == str(key):
                return value, name.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key].start_mark.line + 1
    return None


def _contrast(expected: str, node: yaml.Node) -> str:
    text = f"expected {expected}, found {_found(node)}"
    unquoted = isinstance(node, yaml.ScalarNode) and not node.tag.endswith((":str", ":null"))
    return f"{text}; put it in quotes" if unquoted and expected.startswith("text") else text


def _found(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    text = str(node.value)
    if node.tag.endswith(":null"):
        return "nothing"
    short = text if len(text) <= 60 else f"{text[:57]}..."
    return f'"{short}"' if node.tag.endswith(":str") else short


def _path(keys: Sequence[Key]) -> str:
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text
