"""`kvswarm report`: the tables of runs in the terminal, as JSON, as a page with plots, or the plots as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.errors import InputError

Runs = Annotated[list[str], typer.Argument(help="Directory or id of a run; latest: the newest one.")]
STDOUT = "-"


def report(
    runs: Runs,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    as_html: Annotated[
        bool, typer.Option("--html", help="Write a page with plots: report.html in the run's directory, or see --to.")
    ] = False,
    to: Annotated[
        str, typer.Option(metavar="FILE", help="Where --html writes; - is stdout. Of several runs: ./report.html.")
    ] = "",
    figures: Annotated[
        str, typer.Option(metavar="DIR", help="Write the plots as files, an SVG and a PNG of each.")
    ] = "",
    all_requests: Annotated[
        bool,
        typer.Option("--all-requests", help="Count the times of those under way while the harness was the bottleneck."),
    ] = False,
    modelled: Annotated[
        str | None,
        typer.Option(
            metavar="N|all", help="Requests of each target that the cache models are given, the first; default: 20,000."
        ),
    ] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Of a damaged run show what is there.")] = False,
) -> None:
    """Print the tables of one run, or of several side by side."""
    if to and not as_html:
        raise InputError("--to says where the page goes: it needs --html.")
    if as_html or figures:
        _write(runs, all_requests, modelled, lenient, to if as_html else None, figures)
    else:
        print_tables(runs, as_json, all_requests, modelled, lenient)


def print_tables(
    runs: list[str],
    as_json: bool = False,
    all_requests: bool = False,
    modelled: str | None = None,
    lenient: bool = False,
) -> None:
    """Raises as `open_run` and `parse_modelled`."""
    from rich.console import Console

    from harness.analysis import load
    from harness.analysis.report import as_json as to_json
    from harness.analysis.report import render
    from harness.analysis.run import parse_modelled
    from harness.record.damage import naming_damage
    from harness.record.reader import open_runs

    most = parse_modelled(modelled)
    recorded = open_runs(runs, strict=not lenient)
    with naming_damage(recorded):
        loaded = [load(run, all_requests=all_requests, modelled=most) for run in recorded]
        if as_json:
            typer.echo(to_json(loaded))
        else:
            render(loaded, Console())


def _write(
    runs: list[str], all_requests: bool, modelled: str | None, lenient: bool, to: str | None, figures: str
) -> None:
    """`to`: empty for the usual place, None: no page."""
    from harness.analysis.run import parse_modelled
    from harness.record.damage import naming_damage
    from harness.record.reader import open_runs
    from harness.record.storage import Folder
    from harness.report.document import PAGE, document, plots_of, write_page
    from harness.report.figures import write_figures
    from harness.report.side import read

    most = parse_modelled(modelled)
    recorded = open_runs(runs, strict=not lenient)
    with naming_damage(recorded):
        reported = read(recorded, all_requests, most)
        if to == STDOUT:
            typer.echo(document(reported), nl=False)
        elif to is not None:
            beside = recorded[0].folder if len(recorded) == 1 else Folder.at(".")
            folder, name = (beside, PAGE) if not to else (Folder.at(Path(to).parent), Path(to).name)
            typer.echo(f"The report is {write_page(document(reported), folder, name)}.")
        if figures:
            names = write_figures(plots_of(reported), figures)
            typer.echo(f"{len(names)} files of plots are in {figures}.")
