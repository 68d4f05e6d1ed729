"""`kvswarm find ...`: its options."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from harness.errors import InputError
from harness.slo.objective import EXAMPLE

_PART = re.compile(r"(\d+(?:\.\d+)?)([smh])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """Of a time such as 90s, 5m or 1m30s. Raises InputError."""
    given = text.strip()
    if not re.fullmatch(f"(?:{_PART.pattern})+", given):
        raise InputError(f"--run-time is {text!r}: expected a time such as 30s, 2m or 1m30s.")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(given))


def find(
    context: typer.Context,
    scenario: Annotated[str, typer.Argument(help="Name of a file in scenarios/, or the path of a YAML file.")],
    target: Annotated[str, typer.Option(help="OpenAI base URL (http://host:port/v1), or a file in scenarios/targets.")],
    slo: Annotated[str, typer.Option(help=f"What has to hold: {EXAMPLE}; times are ttft, ttft_due, tpot, e2e.")],
    rate_from: Annotated[float, typer.Option(help="Lowest rate, in sessions a second.")] = 0.5,
    rate_to: Annotated[float, typer.Option(help="Highest rate.")] = 64,
    arrivals: Annotated[str, typer.Option(help="poisson, constant or gamma:CV.")] = "poisson",
    run_time: Annotated[str, typer.Option(help="Of the first look at a rate; further ones are longer.")] = "30s",
    looks: Annotated[int, typer.Option(min=1, max=6, help="Most looks at a rate that is not decided.")] = 3,
    precision: Annotated[float, typer.Option(help="How close the rates that are met and not met shall come.")] = 0.05,
    confidence: Annotated[float, typer.Option(help="That all that is decided is right.")] = 0.95,
    changes: Annotated[str, typer.Option("--set", help="Keys of the scenario with other values: steps=4.")] = "",
    model: Annotated[str, typer.Option(help="Model to ask for; empty: the server's only or first one.")] = "",
    users: Annotated[int | None, typer.Option(min=1, help="Most live sessions; default: 1000.")] = None,
    workers: Annotated[int, typer.Option(min=0, help="Worker processes; 0: one process does everything.")] = 2,
    results: Annotated[str, typer.Option(help="Where runs are written.")] = "results",
) -> None:
    """The highest rate of sessions that still meets an objective, as goodput. Further options go to Locust.

    Exit code: 0 there is one, 4 not even the lowest rate does, 5 it could not be told.
    """
    from harness.find import find as search
    from harness.launch import Swarm
    from harness.slo.search import Plan
    from harness.variants import new_name

    plan = Plan(rate_from, rate_to, precision, confidence, seconds(run_time), looks)
    swarm = Swarm(scenario, target, changes, False, model, workers, users, "", results, tuple(context.args))
    raise typer.Exit(search(swarm, slo, plan, arrivals, new_name("find", scenario)))
