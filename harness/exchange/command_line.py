"""`kvswarm beside ...` and `kvswarm export ...`: their options."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.errors import InputError

if TYPE_CHECKING:
    from harness.analysis import Run as AnalysedRun

Run = Annotated[str, typer.Argument(help="Directory or id of a run; latest: the newest one.")]
Output = Annotated[Path | None, typer.Option(help="File to write; default: standard output.")]
Results = Annotated[str, typer.Option(help="Where runs are.")]
Lenient = Annotated[bool, typer.Option("--lenient", help="Of a damaged run take what is there.")]
export_app = typer.Typer(help="A run for other programs.", no_args_is_help=True)


def beside(
    run: Run,
    files: Annotated[
        list[Path],
        typer.Argument(help="Result files of vllm bench serve, GuideLLM, AIPerf or inference-perf, as JSON."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    results: Results = "results",
    lenient: Lenient = False,
) -> None:
    """What other load generators measured, next to a run: by their definitions, and by ours."""
    from rich.console import Console

    from harness.exchange.beside import beside as put_beside
    from harness.exchange.beside_table import render
    from harness.exchange.ours import Ours
    from harness.exchange.reading import read_results

    measured = [one for file in files for one in read_results(file)]
    with _opened(run, results, lenient) as recorded:
        targets = recorded.by_target()
        if not any(target.is_measured.any() for target in targets):
            raise InputError(f"run {run!r} has no measured request: there is nothing to put beside.")
        ours = [Ours(recorded.manifest.run_id, target) for target in targets]
        found = [put_beside(target, one) for one in measured for target in ours]
    if as_json:
        typer.echo(json.dumps([one.to_json() for one in found], indent=2))
        return
    for one in found:
        render(one, Console())


@export_app.command()
def openmetrics(run: Run, output: Output = None, results: Results = "results", lenient: Lenient = False) -> None:
    """The run as OpenMetrics text with times, for promtool tsdb create-blocks-from openmetrics."""
    from harness.exchange.openmetrics import lines, stored
    from harness.exchange.run_series import series_of_run

    with _opened(run, results, lenient) as ours:
        series = series_of_run(ours)
    times_ns = [at_ns for one in series for at_ns in (*one.times_ns[:1], *one.times_ns[-1:])]
    if not times_ns:
        raise InputError(f"run {run!r} has no measured request and no server metrics: there is nothing to export.")
    _write(lines(series), output)
    start, end = (datetime.fromtimestamp(at_ns / 1e9, UTC) for at_ns in (min(times_ns), max(times_ns)))
    sys.stderr.write(f"{stored(series)} series from {start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC\n")


@export_app.command()
def grafana(output: Output = None) -> None:
    """A Grafana dashboard of exported runs, to be imported there."""
    from harness.exchange.grafana import dashboard

    _write([json.dumps(dashboard(), indent=2), "\n"], output)


@contextmanager
def _opened(run: str, results: str, lenient: bool) -> Iterator[AnalysedRun]:
    """What may not mean what it seems to is said on stderr."""
    from harness.analysis import load
    from harness.record.damage import naming_damage
    from harness.record.reader import open_run

    recorded = open_run(run, results, strict=not lenient)
    with naming_damage([recorded]):
        loaded = load(recorded)
        for problem in loaded.problems:
            typer.echo(f"Note: {loaded.manifest.run_id}: {problem}", err=True)
        yield loaded


def _write(pieces: Iterable[str], output: Path | None) -> None:
    if output is None:
        sys.stdout.writelines(pieces)
        return
    try:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}.") from error
