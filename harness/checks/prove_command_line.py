"""`kvswarm prove ...`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def prove(
    target: Annotated[str, typer.Option(help="OpenAI base URL, or a file in scenarios/targets.")] = "",
    ab: Annotated[
        tuple[str, str] | None,
        typer.Option("--ab", metavar="A B", help="Cache on and off: two targets, measured in turn, or two runs."),
    ] = None,
    prefix_file: Annotated[Path | None, typer.Option(help="Text file to use as the shared prefix.")] = None,
    prefix_tokens: Annotated[
        int | None, typer.Option(min=1, help="Length of the shared prefix; default: 2000, or what fits.")
    ] = None,
    prefixes: Annotated[int, typer.Option(min=5, help="Prefixes to measure, one after the other.")] = 5,
    questions: Annotated[int, typer.Option(min=2, help="Questions about each prefix.")] = 3,
    model: Annotated[str, typer.Option(help="Model to ask for; empty: the server's only or first one.")] = "",
    labbook: Annotated[Path | None, typer.Option(help="File to append one JSON line to.")] = None,
    results: Annotated[str, typer.Option(help="Where runs are written.")] = "results",
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")] = False,
) -> None:
    """Show whether the prefix cache works, by counts and by the clock. Exit code: 0 shown, 1 not, 2 cannot be told."""
    import json
    from contextlib import ExitStack
    from dataclasses import asdict

    from rich.console import Console

    from harness.checks.labbook import labbook as opened_book
    from harness.checks.labbook import write_line
    from harness.checks.laboratory import opened, targets_of
    from harness.checks.prove import Asked
    from harness.checks.prove import prove as measured
    from harness.checks.prove_file import read_prefix
    from harness.checks.prove_pair import compare
    from harness.checks.prove_runs import are_runs
    from harness.checks.prove_table import render, render_verdict
    from harness.errors import InputError, TargetError

    if bool(target) == (ab is not None):
        raise InputError("Give one target (--target URL), or two targets or runs to compare (--ab A B).")
    if ab is not None and are_runs(ab, results):
        if prefix_file is not None or prefix_tokens is not None or model:
            raise InputError(
                "Runs were sent what they were sent: leave out --prefix-file, --prefix-tokens and --model with --ab "
                "RUN_A RUN_B."
            )
        raise typer.Exit(_of_runs(ab, results, labbook, as_json))
    if prefix_file is not None and prefix_tokens is not None:
        raise InputError("Give --prefix-file or --prefix-tokens, not both: a file is sent whole.")
    asked = Asked(prefix_tokens, None if prefix_file is None else read_prefix(prefix_file), prefixes, questions)
    book = opened_book(labbook)
    try:
        targets = targets_of([target] if ab is None else list(ab), model)
    except TargetError as error:
        raise error if ab is None else InputError(f"{error}; nor is it a run in {results}") from None
    options = {
        "prefix_file": None if prefix_file is None else str(prefix_file),
        "prefix_tokens": prefix_tokens,
        "prefixes": prefixes,
        "questions": questions,
    }
    with ExitStack() as stack:
        laboratories = [stack.enter_context(opened("prove", one, results, options)) for one in targets]
        proofs = measured(laboratories, asked)
    findings = [proof.finding() for proof in proofs]
    finding = findings[0] if ab is None else compare(proofs[0], proofs[1])
    write_line(book, "prove", laboratories[0], finding, *laboratories[1:])
    if as_json:
        folders = [laboratory.folder for laboratory in laboratories]
        typer.echo(json.dumps({**asdict(finding), "folders": folders}, indent=2))
    else:
        console = Console()
        for proof, of_target in zip(proofs, findings, strict=True):
            render(proof, of_target, console)
        if ab is not None:
            render_verdict(finding, console)
    raise typer.Exit(finding.exit_code)


def _of_runs(names: tuple[str, str], results: str, labbook: Path | None, as_json: bool) -> int:
    """Compare two runs; the exit code."""
    import json
    from dataclasses import asdict

    from rich.console import Console

    from harness.checks.labbook import labbook as opened_book
    from harness.checks.labbook import write_runs
    from harness.checks.prove_runs import compare_runs
    from harness.checks.prove_table import render_verdict

    book = opened_book(labbook)
    finding, runs = compare_runs(names, results)
    write_runs(book, "prove", runs, finding)
    if as_json:
        typer.echo(json.dumps({**asdict(finding), "folders": [run.folder.url for run in runs]}, indent=2))
    else:
        render_verdict(finding, Console())
    return finding.exit_code
