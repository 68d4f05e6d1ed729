"""`kvswarm trace ...`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

trace_app = typer.Typer(help="Look at a trace of requests; no server is needed.", no_args_is_help=True)


@trace_app.command()
def reuse(
    file: Annotated[
        Path, typer.Argument(help="Mooncake JSONL, agentic JSON, or JSONL of OpenAI messages: see docs/traces.md.")
    ],
    block: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of a block; default: the trace's own, 16 for messages, which take any."),
    ] = None,
    capacity_tokens: Annotated[
        str, typer.Option(help="Capacities to tell the hit rate of; several: a,b. Default: a ladder.")
    ] = "",
    trace_block: Annotated[int, typer.Option(min=1, help="Tokens that an id of a Mooncake file stands for.")] = 512,
    tokenizer: Annotated[
        Path | None, typer.Option(help="tokenizer.json to count the tokens of messages with; default: an estimate.")
    ] = None,
    sample: Annotated[float, typer.Option(help="Share of the distinct blocks to look at, such as 0.01.")] = 1.0,
    skip_bad_lines: Annotated[
        bool, typer.Option("--skip-bad-lines", help="Leave out and count what cannot be used.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="SVG file to draw hit rate against capacity in.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """What the requests of a trace could reuse, and how large a cache it takes."""
    from rich.console import Console

    from harness.traces.reading import read_trace
    from harness.traces.reuse import as_json as to_json
    from harness.traces.reuse import capacities, reuse_of
    from harness.traces.reuse_plot import write_plot
    from harness.traces.reuse_tables import render

    trace = read_trace(
        file,
        mooncake_block_tokens=trace_block,
        messages_block_tokens=block,
        tokenizer=tokenizer,
        skip_bad=skip_bad_lines,
    )
    found, distances = reuse_of(trace, block, capacities(capacity_tokens), sample)
    if plot:
        write_plot(plot, found, distances)
    if as_json:
        typer.echo(to_json(found))
    else:
        render(found, Console())


@trace_app.command()
def export(
    run: Annotated[str, typer.Argument(help="Directory or id of a run; latest: the newest one.")],
    out: Annotated[Path, typer.Argument(help="File to write; of several targets, each gets one of its own.")],
    block: Annotated[int, typer.Option(min=1, help="Tokens of a block: in such steps the trace tells sharing.")] = 16,
    target: Annotated[str | None, typer.Option(help="Name of the one target to write; default: all.")] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Of a damaged run take what is there.")] = False,
) -> None:
    """Write the measured requests of a run as a Mooncake trace, which can be replayed."""
    from harness.record.reader import open_run
    from harness.traces.export import export_run

    recorded = open_run(run, strict=not lenient)
    for problem in recorded.problems:
        typer.echo(f"Note: {recorded.manifest.run_id}: {problem}", err=True)
    for written in export_run(recorded, out, block, target):
        typer.echo(
            f"{written.path}: {written.requests:,} requests to {written.target} in blocks of {block} tokens "
            f"(--trace-block {block}, or block_tokens: {block} in a scenario)"
        )
