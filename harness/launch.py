"""Starts Locust in a process of its own, with the options of a kvswarm command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.embedded.process import free_port
from harness.errors import InputError

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Swarm:
    """What to run: workers is the number of worker processes; 0 means that one process does everything."""

    scenario: str
    target: str
    changes: str = ""
    """Keys of the scenario with other values, as `--set` takes them."""
    together: bool = False
    """Load several targets at the same time, not one after the other."""
    model: str = ""
    workers: int = 2
    users: int | None = None
    """None: as many as the scenario has running sessions, else `harness.swarm.prepare.USERS`."""
    run_time: str = ""
    results: str = "results"
    extra: tuple[str, ...] = ()
    """Further options, passed to Locust as they are."""

    def arguments(self) -> list[str]:
        """Locust's command line, without headless or web options."""
        command = [sys.executable, "-m", "locust", "-f", str(locustfile()), "--scenario", self.scenario]
        for flag, value in (
            ("--set", self.changes),
            ("--target", self.target),
            ("--model", self.model),
            ("--run-time", self.run_time),
        ):
            if value:
                command += [flag, value]
        command += ["--results", self.results]
        command += ["--together"] if self.together else []
        if self.users is not None:
            command += ["--users", str(self.users)]
        if self.workers > 0:
            port = str(free_port(LOOPBACK))
            command += ["--processes", str(self.workers), "--master-bind-host", LOOPBACK]
            command += ["--master-host", LOOPBACK, "--master-bind-port", port, "--master-port", port]
        return command


def locustfile() -> Path:
    """`locustfiles/swarm.py` of this directory, else of the checkout that this package lies in."""
    for folder in (Path.cwd(), Path(__file__).parents[1]):
        path = folder / "locustfiles" / "swarm.py"
        if path.is_file():
            return path
    raise InputError("There is no locustfiles/swarm.py here; run kvswarm in a checkout of the project.")


def new_run_id(scenario: str) -> str:
    """Name of a run's directory: time of the start and scenario."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{Path(scenario).stem}"


def run_headless(swarm: Swarm, run_id: str) -> int:
    """Run to the end, with kvswarm's own progress lines in place of Locust's tables; returns the exit code."""
    spawn_rate = min(swarm.users or 100, 100)  # Locust warns above 100 a second
    quiet = ["--only-summary", "--skip-log-setup"]  # warnings still reach stderr, each as a bare line
    return wait_for(
        [*swarm.arguments(), "--headless", "--run-id", run_id, "--spawn-rate", str(spawn_rate), *quiet, *swarm.extra]
    )


def run_web(swarm: Swarm, port: int) -> int:
    """Serve Locust's page on loopback until Ctrl-C."""
    return wait_for([*swarm.arguments(), "--web-host", LOOPBACK, "--web-port", str(port), *swarm.extra])


def wait_for(*commands: Sequence[str]) -> int:
    """Run `commands` side by side to their ends and return the worst exit code.

    Ctrl-C and the like reach them through this process, once.

    In the terminal's process group Locust and its workers would each get a Ctrl-C as well, beside what is passed on.
    """
    processes = [
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, start_new_session=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        for command in commands
    ]

    def pass_on(number: int, _: object) -> None:
        for process in processes:
            process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        return max((process.wait() for process in processes), key=abs)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
