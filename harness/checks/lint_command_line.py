"""`kvswarm lint ...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from harness.checks.lint import Measured

FOUND = 1
"""Exit code: something breaks a prefix."""


def lint(
    files: Annotated[
        list[Path],
        typer.Argument(help="A log of requests (JSON Lines), or two prompts (texts or JSON): see docs/lint.md."),
    ],
    tokenizer: Annotated[
        Path | None, typer.Option(help="tokenizer.json to count tokens with; default: an estimate.")
    ] = None,
    target: Annotated[
        str, typer.Option(help="Count with this server's tokeniser, and measure the claim there; as of a run.")
    ] = "",
    model: Annotated[str, typer.Option(help="Model to ask for; empty: the server's only or first one.")] = "",
    block: Annotated[
        int | None, typer.Option(min=1, help="Only whole blocks of so many tokens are reused; default: 1.")
    ] = None,
    capacity_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Capacity of the cache, in blocks of --block (then 16); default: infinite."),
    ] = None,
    fix: Annotated[
        Path | None,
        typer.Option(help="File to write the requests to, with key order, tools and white space put right."),
    ] = None,
    skip_bad_lines: Annotated[
        bool, typer.Option("--skip-bad-lines", help="Leave out and count what cannot be used.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON.")] = False,
) -> None:
    """Find what breaks the prefix that prompts could share. Exit code: 0 nothing found, 1 found, 2 wrong input."""
    import json
    from dataclasses import asdict

    from rich.console import Console

    from harness.errors import InputError
    from harness.lint.finding import lint as lint_log
    from harness.lint.fixing import fixed, write_fixed
    from harness.lint.plain import plain
    from harness.lint.reading import read_log, read_pair
    from harness.lint.reuse import BLOCK_TOKENS, Cache
    from harness.lint.tables import render, render_fixed
    from harness.lint.tokens import by_text

    if len(files) > 2:
        raise InputError(f"{len(files)} files were given; give one log of requests, or two prompts")
    log = read_pair(*files) if len(files) == 2 else read_log(files[0], skip_bad_lines)
    cache = Cache(block or (1 if capacity_tokens is None else BLOCK_TOKENS), capacity_tokens)
    measured: list[Measured] = []
    if target:
        from harness.checks.lint import connected, measure, tokens_of

        engine = connected(target, model)
        tokens = tokens_of(engine, tokenizer)
        found = lint_log(log, tokens, cache)
        measured = measure(engine, log, found, tokens)
    else:
        tokens = by_text(tokenizer)
        found = lint_log(log, tokens, cache)
    put_right = None
    if fix is not None:
        put_right = fixed(log, found, tokens)
        write_fixed(log, put_right, fix, files)
    if as_json:
        value = plain(found, put_right)
        if target:
            value["measured"] = [asdict(pair) for pair in measured]
        typer.echo(json.dumps(value, indent=2, allow_nan=False))
    else:
        console = Console()
        render(found, console)
        if put_right is not None:
            render_fixed(put_right, found, str(fix), console)
        for pair in measured:
            console.print()
            console.print(_pair(pair))
    raise typer.Exit(FOUND if found.kinds else 0)


def _pair(pair: Measured) -> Table:
    table = Table("sent, one after the other", title="Measured at the target", title_justify="left")
    for heading in ("prompt tokens", "cached, claimed", "cached, measured"):
        table.add_column(heading, justify="right")
    for sent in pair.requests:
        counts = (sent.prompt_tokens, sent.claimed_tokens, sent.cached_tokens)
        name = f"{sent.source}{', rearranged' if sent.is_rearranged else ''}"
        table.add_row(escape(name), *("-" if count is None else f"{count:,}" for count in counts))
    return table
