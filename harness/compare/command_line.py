"""`kvswarm compare A B [C ...]`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

FAILED = 1
"""Exit code: a gate failed."""
File = Annotated[str, typer.Option(metavar="FILE", help="Write it there, too; - is stdout, in place of the tables.")]


def compare(
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="A B...",
            help="Runs by directory or id, the first is the reference; RUN@TARGET of a run of several targets; "
            "A,A2 or a pattern: runs that repeat each other.",
        ),
    ],
    allow: Annotated[
        list[str] | None,
        typer.Option(help="A difference that may be: kv_dtype, model, ..., workload, load; may be given again."),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(help='A gate, such as "ttft_p99_ratio>1.1" or "hit_rate_diff<-2%"; several: a,b or again.'),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="A gate that is not decided fails, too.")] = False,
    all_requests: Annotated[
        bool,
        typer.Option("--all-requests", help="Count the times of those under way while the harness was the bottleneck."),
    ] = False,
    markdown: File = "",
    json: File = "",
    junit: Annotated[
        str, typer.Option(metavar="FILE", help="Write the gates there as JUnit XML (docs/exchange.md).")
    ] = "",
    results: Annotated[str, typer.Option(help="Where runs are, if they are named by their ids.")] = "results",
    lenient: Annotated[bool, typer.Option("--lenient", help="Of a damaged run compare what is there.")] = False,
) -> None:
    """Hold runs against the first: identity, workload, then effects with intervals over sessions (docs/compare.md).

    Exit code: 0 compared, 1 a gate failed, 2 the runs may not or cannot be compared.
    """
    from rich.console import Console

    from harness.compare.compare import compare as compare_sides
    from harness.compare.gates import fails, parse_gates
    from harness.compare.junit_cases import as_junit
    from harness.compare.presentation import as_markdown, render
    from harness.errors import InputError

    if [markdown, json, junit].count("-") > 1:
        raise InputError("Only one of --markdown, --json and --junit can go to - (stdout): give the others a file.")
    gates = parse_gates(fail_if or [])
    comparison = compare_sides(
        sides, results, allowed=allow or [], gates=gates, all_requests=all_requests, strict=not lenient
    )
    if "-" not in (markdown, json, junit):
        render(comparison, Console())
    for path, text in ((markdown, as_markdown), (json, lambda found: found.to_json() + "\n")):
        if path:
            _write(path, text(comparison))
    if junit:
        _write(junit, as_junit(comparison.gates, datetime.now(UTC), strict=strict))
    if fails(comparison.gates, strict=strict):
        raise typer.Exit(FAILED)


def _write(path: str, text: str) -> None:
    from harness.errors import InputError

    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}; give another place.") from error
