"""`kvswarm evict`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def evict(
    target: Annotated[str, typer.Option(help="OpenAI base URL (http://host:port/v1), or a file in scenarios/targets.")],
    model: Annotated[str, typer.Option(help="Model to ask for; empty: the server's only or first one.")] = "",
    prompt_tokens: Annotated[
        int | None, typer.Option(min=1, help="Length of the long prompts; default: what suits the target.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="No trial begins after so many seconds.")] = 120.0,
    labbook: Annotated[Path | None, typer.Option(help="File that gets one JSON line with the verdict.")] = None,
    results: Annotated[str, typer.Option(help="Where the run is written.")] = "results",
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Fill the cache until a prompt is gone: how much it holds, what goes first, and whether that is what it claims.

    Exit code: 0 as claimed or nothing claimed, 1 less than claimed or nothing held, 2 cannot be told.
    """
    from harness.checks.evict import evict as run_evict
    from harness.checks.evict import options
    from harness.checks.examine import examine

    finding = examine(
        "evict",
        target,
        model,
        labbook,
        results,
        options(seconds, prompt_tokens),
        lambda laboratory: run_evict(laboratory, seconds, prompt_tokens),
        as_json,
    )
    raise typer.Exit(finding.exit_code)
