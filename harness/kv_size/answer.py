"""The figures of every cache type that is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.errors import InputError
from harness.expectation import suggestion
from harness.kv_size.engine import Engine, StorageType
from harness.kv_size.engines import mixed
from harness.kv_size.holding import Size, objection, size
from harness.kv_size.question import Question

GIB = 1024**3
REMINDER = (
    "A cache in fewer than 16 bits changes what the model answers. Reusing a cached prefix does not: it gives back the "
    "very keys and values that were computed."
)


@dataclass(frozen=True, slots=True)
class Row:
    """A type, with others of its engine that take the same."""

    engine: Engine
    names: tuple[str, ...]
    size: Size
    session_bytes: int
    """Of a session of the length that is asked for."""
    tokens_per_gib: int
    """How many tokens of such sessions fit into a GiB."""
    sessions: int | None
    """How many of them fit on the card; None: no card, or the weights are not known."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    engine: Engine
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    question: Question
    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    room_bytes: int | None
    """Of the card's memory, for the cache; below 0 if the weights alone do not fit. None: no card, or not known."""
    notes: tuple[str, ...]


def chosen(all_engines: Sequence[Engine], engine: str, types: str, values: str) -> list[Engine]:
    """The engines and types with these names (`a,b`; empty: all). Raises InputError for names that there are not."""
    engines = list(all_engines)
    if _split(engine):
        known = {one.name: one for one in engines}
        engines = [_named(known, name, "engine") for name in _split(engine)]
    wanted = _split(types)
    there = {one.name: one for each in engines for one in each.types}
    for name in wanted:
        if name not in there:
            owner = next((each.name for each in all_engines if any(one.name == name for one in each.types)), None)
            if owner is not None:
                raise InputError(f"--engine {engine} has no cache type {name}: {owner} has it.")
            raise InputError(f'There is no cache type "{name}"; {suggestion(name, list(there))}')
    if wanted:
        engines = [replace(each, types=tuple(one for one in each.types if one.name in wanted)) for each in engines]
        engines = [each for each in engines if each.types]
    if values:
        engines = [_with_values(all_engines, engines, values)]
    return engines


def answer(question: Question, engines: Sequence[Engine]) -> Answer:
    """Raises InputError if none of the types can hold the model."""
    room = _room(question)
    rows: list[Row] = []
    left_out: list[LeftOut] = []
    for engine in engines:
        for kept in engine.types:
            reason = objection(engine, kept, question.model)
            if reason:
                left_out.append(LeftOut(engine, kept.name, reason))
                continue
            row = _row(question, engine, kept, room)
            same = [one for one in rows if one.engine is engine and replace(one, names=row.names) == row]
            if same:
                rows[rows.index(same[0])] = replace(same[0], names=(*same[0].names, kept.name))
            else:
                rows.append(row)
    if not rows:
        first = left_out[0]
        raise InputError(f"{first.engine.title} cannot keep this model's cache in {first.name}: {first.reason}.")
    return Answer(question, tuple(rows), tuple(left_out), room, tuple(_notes(question, rows)))


def as_json(found: Answer) -> dict[str, Any]:
    """Every number, sizes in bytes; null is "not known"."""
    question = found.question
    card = question.card
    return {
        "model": question.model.name,
        "layers": [
            {
                "kind": type(layer).__name__.lower(),
                "count": count,
                **{key: getattr(value, "value", value) for key, value in asdict(layer).items()},
            }
            for layer, count in question.model.kinds().items()
        ],
        "context_tokens": question.model.context_tokens,
        "weights_bytes": question.weights.size_bytes,
        "weights_from": question.weights.source,
        "tokens": question.tokens,
        "card": card and {"name": card.name, "memory_bytes": card.memory_bytes, "usable": float(card.usable)},
        "room_bytes": found.room_bytes,
        "types": [
            {
                "engine": row.engine.name,
                "names": list(row.names),
                "bytes_per_number": float(row.size.bytes_per_number),
                "bytes_per_token": row.size.per_token,
                "bytes_per_token_past_windows": row.size.per_token_past_windows,
                "state_bytes_per_session": row.size.per_session,
                "session_bytes": row.session_bytes,
                "tokens_per_gib": row.tokens_per_gib,
                "sessions": row.sessions,
            }
            for row in found.rows
        ],
        "left_out": [{"engine": one.engine.name, "name": one.name, "reason": one.reason} for one in found.left_out],
        "notes": list(found.notes),
    }


def _split(names: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))


def _named(known: dict[str, Engine], name: str, what: str) -> Engine:
    if name not in known:
        raise InputError(f'There is no {what} "{name}"; {suggestion(name, list(known))}')
    return known[name]


def _with_values(all_engines: Sequence[Engine], engines: list[Engine], values: str) -> Engine:
    if len(engines) != 1 or engines[0].name != "llama-cpp" or len(engines[0].types) != 1:
        raise InputError("--type-v goes with one --type of llama-cpp, which alone keeps keys and values in two types.")
    every = next(one for one in all_engines if one.name == "llama-cpp").types
    known = {one.name: one for one in every}
    if values not in known:
        raise InputError(f'There is no cache type "{values}" of llama-cpp; {suggestion(values, list(known))}')
    return replace(engines[0], types=(mixed(engines[0].types[0], known[values]),))


def _room(question: Question) -> int | None:
    if question.card is None or question.weights.size_bytes is None:
        return None
    return int(question.card.memory_bytes * question.card.usable) - question.weights.size_bytes


def _row(question: Question, engine: Engine, kept: StorageType, room: int | None) -> Row:
    found = size(engine, kept, question.model)
    session = found.bytes_at(question.tokens)
    return Row(
        engine=engine,
        names=(kept.name,),
        size=found,
        session_bytes=session,
        tokens_per_gib=question.tokens * GIB // session,
        sessions=None if room is None else max(0, room) // session,
    )


def _notes(question: Question, rows: Sequence[Row]) -> Iterator[str]:
    model = question.model
    yield from model.notes
    if model.context_tokens is not None and question.tokens > model.context_tokens:
        yield f"The model is made for {model.context_tokens:,} tokens at most."
    if model.windows:
        yield (
            "Past a window a layer is taken to keep no more than the window. An engine that keeps all of it needs what "
            "--keep-windows tells: llama.cpp with --swa-full, and engines that do not know this model's windows."
        )
    if any(row.size.per_session for row in rows):
        yield "A cache that serves prefixes keeps more than one copy of a session's recurrent state."
    if any(row.engine.name == "mlx-lm" and row.names != ("16bit",) for row in rows):
        yield "mlx-lm keeps a session in 16 bits until it has --quantized-kv-start tokens (5,000 by default)."
    yield REMINDER
