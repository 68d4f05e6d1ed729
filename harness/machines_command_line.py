"""`kvswarm master` and `kvswarm worker`: a swarm over several machines."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from harness.errors import InputError

LINK_PORT = 5557
"""Locust's own default."""


def master(
    context: typer.Context,
    scenario: Annotated[str, typer.Option(help="The scenario that the form shows first.")] = "agent-loop",
    target: Annotated[str, typer.Option(help="Whom to load, as every worker's machine reaches it; several: a,b.")] = "",
    model: Annotated[str, typer.Option(help="Model to ask for; empty: the server's only or first one.")] = "",
    port: Annotated[int, typer.Option(help="Port of the page, on loopback.")] = 8089,
    link_port: Annotated[int, typer.Option(help="Port for the workers, on every address of this machine.")] = LINK_PORT,
    results: Annotated[str, typer.Option(help="Where runs are written: a folder, or a URL such as s3://.")] = "results",
) -> None:
    """Open Locust's page, and wait for workers on other machines (kvswarm worker). Further options go to Locust."""
    from harness.launch import LOOPBACK, Swarm, wait_for

    swarm = Swarm(scenario, target, model=model, workers=0, results=results)
    link = ["--master", "--master-bind-port", str(link_port)]
    page = ["--web-host", LOOPBACK, "--web-port", str(port)]
    raise typer.Exit(wait_for([*swarm.arguments(), *link, *page, *context.args]))


def worker(
    context: typer.Context,
    master: Annotated[str, typer.Argument(help="The master's machine, as HOST or HOST:PORT.")],
    workers: Annotated[int, typer.Option(min=1, help="Worker processes; give each a core.")] = 2,
) -> None:
    """Worker processes for a master on another machine (kvswarm master). Further options go to Locust."""
    from harness.launch import locustfile, wait_for

    host, port = _host_and_port(master)
    command = [sys.executable, "-m", "locust", "-f", str(locustfile()), "--worker"]
    command += ["--master-host", host, "--master-port", str(port), *context.args]
    raise typer.Exit(wait_for(*[command] * workers))


def _host_and_port(master: str) -> tuple[str, int]:
    found = re.fullmatch(r"(\[[0-9a-fA-F:.%\w]+\]|[^:\[\]]+)(?::(\d{1,5}))?", master)
    if found is None:
        raise InputError(f"{master!r} is no machine: give HOST or HOST:PORT, such as 10.0.0.1 or 10.0.0.1:{LINK_PORT}.")
    return found[1], int(found[2] or LINK_PORT)
