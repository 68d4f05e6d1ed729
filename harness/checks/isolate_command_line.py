"""`kvswarm isolate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def isolate(
    target: Annotated[str, typer.Option(help="OpenAI base URL (http://host:port/v1), or a file in scenarios/targets.")],
    model: Annotated[str, typer.Option(help="Model to ask for; empty: the server's only or first one.")] = "",
    prefix_tokens: Annotated[
        int | None, typer.Option(min=1, help="Length of the prefix; default: what suits the target.")
    ] = None,
    labbook: Annotated[Path | None, typer.Option(help="File that gets one JSON line with the verdict.")] = None,
    results: Annotated[str, typer.Option(help="Where the run is written.")] = "results",
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Two tenants, one prefix: does the second see what the first sent, with and without a key that keeps them apart?

    Exit code: 0 kept apart, 1 shared, 2 cannot be told.
    """
    from harness.checks.examine import examine
    from harness.checks.isolate import isolate as run_isolate
    from harness.checks.isolate import options

    finding = examine(
        "isolate",
        target,
        model,
        labbook,
        results,
        options(prefix_tokens),
        lambda laboratory: run_isolate(laboratory, prefix_tokens),
        as_json,
    )
    raise typer.Exit(finding.exit_code)
