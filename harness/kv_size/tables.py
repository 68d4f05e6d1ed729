"""An answer as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.kv_size.answer import Answer, Row


def render(found: Answer, console: Console) -> None:
    """Print everything in 80 columns."""
    # Text, not markup: names of files may hold square brackets.
    console.print(Text(found.question.model.name, style="bold"))
    console.print(_facts(found))
    for engine, rows in groupby(found.rows, key=lambda row: row.engine):
        console.print()
        console.print(Text(f"{engine.title}, {engine.flag}", style="bold"))
        console.print(_types(found, list(rows)))
    console.print()
    for sentence in _sentences(found):
        console.print(Text(sentence))


def _facts(found: Answer) -> Table:
    table = Table(show_header=False)
    table.add_column()
    table.add_column()
    for name, text in _fact_rows(found):
        table.add_row(Text(name), Text(text))
    return table


def _fact_rows(found: Answer) -> Iterator[tuple[str, str]]:
    question = found.question
    kinds = question.model.kinds().items()
    yield "layers", "\n".join(f"{count} with {layer}" for layer, count in kinds)
    known = question.weights.size_bytes
    if known is not None:
        yield "weights", f"{_gigabytes(known)} ({question.weights.source})"
    elif question.card is not None:
        yield "weights", f"not known: {question.weights.source}"
    card = question.card
    if card is not None:
        yield (
            "card",
            f"{card.name}: {_gigabytes(card.memory_bytes)}, {float(100 * card.usable):.4g} % of it can be used",
        )
        yield "room", _room(found)


def _room(found: Answer) -> str:
    if found.room_bytes is None:
        return "not known without the weights: give --weights 16GB, or --parameters 8B --weight-bits 16"
    if found.room_bytes < 0:
        return f"none: the weights alone are {_gigabytes(-found.room_bytes)} too many"
    return f"{_gigabytes(found.room_bytes)} for the cache"


def _types(found: Answer, rows: list[Row]) -> Table:
    table = Table()
    table.add_column("type", no_wrap=True)
    has_windows = bool(found.question.model.windows)
    has_states = any(row.size.per_session for row in rows)
    headings = ["bytes a number", "bytes a token"]
    headings += ["past windows"] if has_windows else []
    headings += ["state"] if has_states else []
    headings += ["tokens a GiB", f"{found.question.tokens:,} tokens"]
    headings += ["sessions"] if found.room_bytes is not None else []
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [f"{float(row.size.bytes_per_number):.5g}", f"{row.size.per_token:,}"]
        cells += [f"{row.size.per_token_past_windows:,}"] if has_windows else []
        cells += [_megabytes(row.size.per_session)] if has_states else []
        cells += [f"{row.tokens_per_gib:,}", _gigabytes(row.session_bytes)]
        cells += [f"{row.sessions:,}"] if row.sessions is not None else []
        table.add_row(Text("\n".join(row.names)), *cells)
    return table


def _sentences(found: Answer) -> Iterator[str]:
    for (engine, reason), group in groupby(found.left_out, key=lambda one: (one.engine, one.reason)):
        names = ", ".join(one.name for one in group)
        yield f"Not for this model: {engine.title}'s {names}, as {reason}."
    yield from found.notes


def _gigabytes(size: int) -> str:
    """In GB, 10^9 bytes, to three digits."""
    value = size / 10**9
    return f"{value:,.0f} GB" if value >= 100 else f"{value:.3g} GB"


def _megabytes(size: int) -> str:
    return f"{size / 10**6:,.1f} MB"
