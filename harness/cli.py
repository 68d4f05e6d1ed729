"""`kvswarm ...`: the commands, each a few lines over the module that does the work."""

from __future__ import annotations

import json
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
target_app = typer.Typer(help="Look at a target by hand.", no_args_is_help=True)
app.add_typer(target_app, name="target")

Scenario = Annotated[str, typer.Argument(help="Name of a file in scenarios/, or the path of a YAML file.")]
Target = Annotated[
    str, typer.Option(help="OpenAI base URL (http://host:port/v1), or a file in scenarios/targets; several: a,b.")
]
Model = Annotated[str, typer.Option(help="Model to ask for; empty: the server's only or first one.")]
Workers = Annotated[int, typer.Option(min=0, help="Worker processes; 0: one process does everything.")]
Port = Annotated[int, typer.Option(help="0: any free one.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
HuggingFace = Annotated[
    Path | None,
    typer.Option(help="Folder of a Hugging Face model; default: a tiny random-weight one, made on the spot."),
]
Capacity = Annotated[int, typer.Option("--kv-tokens", help="Tokens that the KV cache holds.")]
Context = Annotated[int, typer.Option("--context-tokens", help="Longest prompt and answer of one request.")]
Caching = Annotated[bool, typer.Option("--prefix-caching/--no-prefix-caching", help="Reuse what is cached.")]
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
    together: Annotated[
        bool, typer.Option("--together", help="Load several targets at the same time, not one after the other.")
    ] = False,
    model: Model = "",
    users: Annotated[int, typer.Option(min=1, help="Live sessions.")] = 4,
    run_time: Annotated[str, typer.Option(help="For each target, such as 60s or 5m; empty: until Ctrl-C.")] = "60s",
    workers: Workers = 2,
    results: Results = "results",
) -> None:
    """Run a scenario against a target without the page, then print the tables. Further options go to Locust."""
    from harness.launch import Swarm, new_run_id, run_headless

    run_id = new_run_id(scenario)
    swarm = Swarm(scenario, target, together, model, workers, users, run_time, results, tuple(context.args))
    code = run_headless(swarm, run_id)
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

    swarm = Swarm(scenario, target, model=model, workers=workers, results=results, extra=tuple(context.args))
    raise typer.Exit(run_web(swarm, port))


@app.command()
def demo(results: Results = "results", seconds: Annotated[int, typer.Option(min=5, help="Per run.")] = 22) -> None:
    """All three kinds of session against a real llama.cpp server, with prompt caching on and off."""
    from harness.demo import demonstrate

    raise typer.Exit(demonstrate(results, seconds))


@app.command(name="demo-engines")
def demo_engines(
    results: Results = "results", seconds: Annotated[int, typer.Option(min=5, help="Per engine.")] = 20
) -> None:
    """One seeded agent loop on the real server of every engine that is installed, one after the other."""
    from harness.demo_engines import demonstrate

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
    port: Port = 8080,
    host: Host = "127.0.0.1",
    model: Annotated[
        Path | None, typer.Option(help="GGUF file; default: a tiny random-weight model, made on the spot.")
    ] = None,
    alias: Annotated[str, typer.Option(help="The model's name in requests.")] = "tiny",
    context_tokens: Annotated[int, typer.Option("--ctx-size", help="KV capacity of the whole server.")] = 32768,
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


@serve_app.command()
def vllm(
    port: Port = 8000,
    host: Host = "127.0.0.1",
    model: HuggingFace = None,
    context: Context = 8192,
    capacity: Capacity = 32768,
    block: Annotated[int, typer.Option("--block-size", help="Tokens of a block; hits are rounded down to it.")] = 32,
    caching: Caching = True,
) -> None:
    """vLLM's server on the CPU, in the foreground; installed under .cache/ first if need be (2.3 GB)."""
    from harness.embedded.engine_options import VllmOptions
    from harness.embedded.server import serve

    options = VllmOptions(
        host=host,
        port=port,
        model=model,
        context_tokens=context,
        kv_tokens=capacity,
        page_tokens=block,
        prefix_caching=caching,
    )
    raise typer.Exit(serve(options))


@serve_app.command()
def sglang(
    port: Port = 30000,
    host: Host = "127.0.0.1",
    model: HuggingFace = None,
    context: Context = 8192,
    capacity: Capacity = 32768,
    page: Annotated[int, typer.Option("--page-size", help="Tokens of a page; hits are rounded down to it.")] = 1,
    caching: Caching = True,
) -> None:
    """SGLang's server on the CPU, in the foreground; installed under .cache/ first if need be (3.3 GB)."""
    from harness.embedded.engine_options import SglangOptions
    from harness.embedded.server import serve

    options = SglangOptions(
        host=host,
        port=port,
        model=model,
        context_tokens=context,
        kv_tokens=capacity,
        page_tokens=page,
        prefix_caching=caching,
    )
    raise typer.Exit(serve(options))


@serve_app.command(name="mlx-lm")
def mlx_lm(
    port: Port = 8081,
    host: Host = "127.0.0.1",
    model: HuggingFace = None,
    entries: Annotated[int, typer.Option("--prompt-cache-size", help="Prompts that the cache keeps.")] = 10,
) -> None:
    """mlx-lm's server on the CPU, in the foreground; installed under .cache/ first if need be (0.4 GB)."""
    from harness.embedded.engine_options import MlxLmOptions
    from harness.embedded.server import serve

    raise typer.Exit(serve(MlxLmOptions(host=host, port=port, model=model, cache_entries=entries)))


@target_app.command()
def check(
    target: Annotated[str, typer.Argument(help="As --target of a run; several: a,b.")],
    model: Model = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Send a few prompts and say whether the cache works. Exit code: 0 it does, 4 it does not, 5 cannot be told."""
    from rich.console import Console

    from harness.checks.by_hand import check_target, exit_code
    from harness.checks.presentation import render
    from harness.engines.target import resolve_targets

    checked = []
    for one in resolve_targets(target):
        checked.append(check_target(one.model_copy(update={"model": model}) if model else one))
        if not as_json:
            render(checked[-1], Console())
    if as_json:
        typer.echo(json.dumps([one.to_json() for one in checked], indent=2))
    raise typer.Exit(exit_code(checked))


def main() -> None:
    """Run a command; a KvswarmError becomes its one sentence on stderr and its exit code."""
    try:
        app()
    except KvswarmError as error:
        sys.stderr.write(f"kvswarm: {error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
