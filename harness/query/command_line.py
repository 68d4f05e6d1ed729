"""`kvswarm query RUN... "SELECT ..."`."""

from __future__ import annotations

from typing import Annotated

import typer

File = Annotated[str, typer.Option(metavar="FILE", help="Write the answer there; - is stdout.")]


def query(
    words: Annotated[
        list[str],
        typer.Argument(metavar="RUN... SQL", help="Directories or ids of runs (latest: the newest); last the query."),
    ],
    csv: File = "",
    parquet: File = "",
    markdown: File = "",
    json: File = "",
    results: Annotated[str, typer.Option(help="Where runs are, if they are named by their ids.")] = "results",
    lenient: Annotated[bool, typer.Option("--lenient", help="Of a damaged run ask what is there.")] = False,
) -> None:
    """Ask the rows of recorded runs in SQL (DuckDB). Read-only; docs/analysis.md lists the views and ten recipes.

    Exit code: 0 answered, 2 a run cannot be read, or the query cannot be answered.
    """
    from rich.console import Console

    from harness.errors import InputError
    from harness.query.query import query as ask

    *runs, sql = words
    if not runs:
        raise InputError('Name the runs, and then the query: kvswarm query latest "SELECT count(*) FROM requests"')
    files = {"csv": csv, "parquet": parquet, "markdown": markdown, "json": json}
    given = {kind: path for kind, path in files.items() if path}
    for problem in ask(runs, sql, results, given, Console(), strict=not lenient):
        typer.echo(f"Note: {problem}", err=True)
