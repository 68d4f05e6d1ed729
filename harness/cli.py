"""`kvswarm ...`: the commands, each a few lines over the module that does the work."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from harness import __version__
from harness.checks.evict_command_line import evict
from harness.checks.isolate_command_line import isolate
from harness.checks.lint_command_line import lint
from harness.checks.persist_command_line import persist
from harness.checks.prove_command_line import prove
from harness.compare.command_line import compare
from harness.embedded.command_line import serve_app
from harness.errors import KvswarmError
from harness.exchange.command_line import beside, export_app
from harness.find_command_line import find
from harness.kv_size.command_line import kv_size
from harness.machines_command_line import master, worker
from harness.query.command_line import query
from harness.report.command_line import print_tables, report
from harness.sim.command_line import sim
from harness.traces.command_line import trace_app

app = typer.Typer(
    help="Does my prefix cache work, and what does it buy me under load?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
serve_app.command(name="sim")(sim)
app.add_typer(serve_app, name="serve")
target_app = typer.Typer(help="Look at a target by hand.", no_args_is_help=True)
app.add_typer(target_app, name="target")
app.add_typer(trace_app, name="trace")
app.add_typer(export_app, name="export")
app.command(name="kv-size")(kv_size)
app.command()(lint)
app.command()(prove)
app.command()(evict)
app.command()(isolate)
app.command()(persist)
app.command()(report)
app.command()(query)
app.command()(compare)
app.command()(beside)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(master)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(worker)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(find)

Scenario = Annotated[str, typer.Argument(help="Name of a file in scenarios/, or the path of a YAML file.")]
Target = Annotated[
    str, typer.Option(help="OpenAI base URL (http://host:port/v1), or a file in scenarios/targets; several: a,b.")
]
Changes = Annotated[
    str, typer.Option("--set", help="Keys of the scenario with other values: pressure=2 or fault.rate=0.5; seed=2.")
]
RunTime = Annotated[str, typer.Option(help="For each target, such as 60s or 5m; empty: until Ctrl-C.")]
Users = Annotated[
    int | None,
    typer.Option(min=1, help="Live sessions; default: the scenario's running_sessions if it has any, else 4."),
]
Model = Annotated[str, typer.Option(help="Model to ask for; empty: the server's only or first one.")]
Workers = Annotated[int, typer.Option(min=0, help="Worker processes; 0: one process does everything.")]
Results = Annotated[str, typer.Option(help="Where runs are written.")]


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
    changes: Changes = "",
    model: Model = "",
    users: Users = None,
    run_time: RunTime = "60s",
    workers: Workers = 2,
    results: Results = "results",
) -> None:
    """Run a scenario against a target without the page, then print the tables. Further options go to Locust."""
    from harness.launch import Swarm, new_run_id, run_headless

    run_id = new_run_id(scenario)
    swarm = Swarm(scenario, target, changes, together, model, workers, users, run_time, results, tuple(context.args))
    code = run_headless(swarm, run_id)
    folder = Path(results) / run_id
    if (folder / "run.json").exists():
        print_tables([str(folder)])
    raise typer.Exit(code)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def sweep(
    context: typer.Context,
    scenario: Scenario,
    target: Target,
    over: Annotated[
        str, typer.Option(help="Key and values: pressure=0.5,1,2 or steps=2:10:2; rate=1,2,4 or users=1,2,4.")
    ],
    changes: Changes = "",
    model: Model = "",
    users: Users = None,
    run_time: RunTime = "30s",
    workers: Workers = 2,
    results: Results = "results",
) -> None:
    """A run for each value of a key of scenario or load, each begun with a cache reset, in one table.

    Further options go to Locust.
    """
    from harness.launch import Swarm
    from harness.sweep import sweep as run_sweep
    from harness.variants import new_name

    swarm = Swarm(scenario, target, changes, False, model, workers, users, run_time, results, tuple(context.args))
    raise typer.Exit(run_sweep(swarm, over, new_name("sweep", scenario)))


@app.command(name="cost-of", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def cost_of(
    context: typer.Context,
    fault: Annotated[str, typer.Argument(help="Arrangement fault, such as timestamp-first; see docs/scenarios.md.")],
    scenario: Scenario,
    target: Target,
    rate: Annotated[float, typer.Option(min=0, max=1, help="Share of the requests that have it.")] = 1.0,
    changes: Changes = "",
    model: Model = "",
    users: Users = None,
    run_time: RunTime = "30s",
    workers: Workers = 2,
    results: Results = "results",
) -> None:
    """The same sessions without and with an arrangement fault: what it costs in tokens and in TTFT."""
    from harness.launch import Swarm
    from harness.sweep import cost_of as run_both
    from harness.variants import new_name

    swarm = Swarm(scenario, target, changes, False, model, workers, users, run_time, results, tuple(context.args))
    raise typer.Exit(run_both(swarm, fault, rate, new_name(f"cost-of-{fault}", scenario)))


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


@app.command(name="demo-sim")
def demo_sim(
    results: Results = "results", seconds: Annotated[int, typer.Option(min=5, help="Per engine and pressure.")] = 10
) -> None:
    """64 agents on a simulated GPU, as vLLM and as SGLang, under rising pressure: where hits collapse."""
    from harness.demo_sim import demonstrate

    raise typer.Exit(demonstrate(results, seconds))


@app.command()
def repair(
    run: Annotated[str, typer.Argument(help="Directory or id of a run whose master was killed; latest: the newest.")],
    results: Results = "results",
) -> None:
    """Make run.json agree with the parts that are there: a run whose master was killed becomes a finished record."""
    from harness.record.repair import repair as put_right

    typer.echo("\n".join(put_right(run, results).sentences()))


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
