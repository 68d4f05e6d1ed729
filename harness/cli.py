"""`kvswarm ...`: the commands, each a few lines over the module that does the work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness import __version__
from harness.errors import KvswarmError

app = typer.Typer(
    help="Does my prefix cache work, and what does it buy me under load?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
serve_app = typer.Typer(help="Start an engine by hand.", no_args_is_help=True)
app.add_typer(serve_app, name="serve")

Scenario = Annotated[str, typer.Argument(help="Name of a file in scenarios/, or the path of a YAML file.")]
Target = Annotated[str, typer.Option(help="OpenAI base URL (http://host:port/v1), or a file in scenarios/targets.")]
Model = Annotated[str, typer.Option(help="Model to ask for; empty: the server's only or first one.")]
Workers = Annotated[int, typer.Option(min=0, help="Worker processes; 0: one process does everything.")]
Results = Annotated[str, typer.Option(help="Where runs are written.")]
Runs = Annotated[list[str], typer.Argument(help="Directory or id of a run; latest: the newest one.")]


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if show:
        typer.echo(__version__)
        raise typer.Exit


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    scenario: Scenario,
    target: Target,
    model: Model = "",
    users: Annotated[int, typer.Option(min=1, help="Live sessions.")] = 4,
    run_time: Annotated[str, typer.Option(help="How long, such as 60s or 5m; empty: until Ctrl-C.")] = "60s",
    workers: Workers = 2,
    results: Results = "results",
) -> None:
    """Run a scenario against a target without the page, then print the tables. Further options go to Locust."""
    from harness.launch import Swarm, new_run_id, run_headless

    run_id = new_run_id(scenario)
    code = run_headless(Swarm(scenario, target, model, workers, users, run_time, results, tuple(context.args)), run_id)
    folder = Path(results) / run_id
    if (folder / "run.json").exists():
        print_report([str(folder)], as_json=False)
    raise typer.Exit(code)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def web(
    context: typer.Context,
    scenario: Annotated[str, typer.Option(help="The scenario that the form shows first.")] = "agent-loop",
    target: Target = "",
    model: Model = "",
    workers: Workers = 2,
    port: Annotated[int, typer.Option(help="Port of the page.")] = 8089,
    results: Results = "results",
) -> None:
    """Open Locust's page on loopback; scenario and target are in its form. Further options go to Locust."""
    from harness.launch import Swarm, run_web

    raise typer.Exit(run_web(Swarm(scenario, target, model, workers, results=results, extra=tuple(context.args)), port))


@app.command()
def demo(results: Results = "results", seconds: Annotated[int, typer.Option(min=5, help="Per run.")] = 22) -> None:
    """All three kinds of session against a real llama.cpp server, with prompt caching on and off."""
    from harness.demo import demonstrate

    raise typer.Exit(demonstrate(results, seconds))


@app.command()
def report(
    runs: Runs,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Print the tables of one run, or of several side by side."""
    print_report(runs, as_json)


def print_report(runs: list[str], as_json: bool) -> None:
    from rich.console import Console

    from harness.analysis import load
    from harness.analysis.report import as_json as to_json
    from harness.analysis.report import render

    loaded = [load(name) for name in runs]
    if as_json:
        typer.echo(to_json(loaded))
    else:
        render(loaded, Console())


@serve_app.command(name="llama-cpp")
def llama_cpp(
    port: Annotated[int, typer.Option(help="0: any free one.")] = 8080,
    host: Annotated[str, typer.Option()] = "127.0.0.1",
    model: Annotated[
        Path | None, typer.Option(help="GGUF file; default: a tiny random-weight model, made on the spot.")
    ] = None,
    alias: Annotated[str, typer.Option(help="The model's name in requests.")] = "tiny",
    context_tokens: Annotated[int, typer.Option("--ctx-size", help="KV capacity of the whole server.")] = 16384,
    slots: Annotated[int, typer.Option("--parallel", help="Requests served at the same time.")] = 4,
    threads: Annotated[int, typer.Option(help="CPU threads.")] = 1,
    cache_prompt: Annotated[bool, typer.Option(help="Reuse the KV cache of earlier prompts.")] = True,
    cache_ram_mib: Annotated[int, typer.Option("--cache-ram", help="MiB for states of evicted slots; 0: off.")] = 8192,
) -> None:
    """llama.cpp's own server from the xllamacpp wheel, in the foreground."""
    from harness.embedded.options import LlamaCppOptions
    from harness.embedded.server import serve

    options = LlamaCppOptions(
        host=host,
        port=port,
        model=model,
        alias=alias,
        context_tokens=context_tokens,
        slots=slots,
        threads=threads,
        cache_prompt=cache_prompt,
        cache_ram_mib=cache_ram_mib,
    )
    raise typer.Exit(serve(options))


def main() -> None:
    """Run a command; a KvswarmError becomes its one sentence on stderr and its exit code."""
    try:
        app()
    except KvswarmError as error:
        sys.stderr.write(f"kvswarm: {error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
