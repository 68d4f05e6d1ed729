"""Several runs in one folder that differ in what they are told to do: those of a sweep, of a search for a rate."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from harness.analysis import load
from harness.analysis.run import TargetRun
from harness.errors import InputError, KvswarmError
from harness.launch import Swarm, run_headless
from harness.record.storage import Folder

LOAD_KEYS = ("rate", "arrivals", "users")
"""What can be varied beside the keys of a scenario: how sessions arrive, and how many live at a time."""


def varied(swarm: Swarm, changes: str) -> Swarm:
    """With other values: `key=value` of the load, or what `--set` takes. Raises InputError for a wrong number of users.

    Any value of rate or arrivals makes the loop an open one.
    """
    key, _, value = changes.partition("=")
    if key == "users":
        if not value.isdecimal() or not int(value):
            raise InputError(f"users cannot be {value!r}: give whole numbers above 0.")
        return _allowing_failures(replace(swarm, users=int(value)))
    if key in LOAD_KEYS:
        return _allowing_failures(replace(swarm, extra=(*swarm.extra, "--load", "open", f"--{key}", value)))
    return replace(swarm, changes="; ".join(filter(None, (swarm.changes, changes))))


def _allowing_failures(swarm: Swarm) -> Swarm:
    """That requests fail under too much load is a result, and no reason to stop."""
    return replace(swarm, extra=("--exit-code-on-error", "0", *swarm.extra))


def run_into(folder: Folder, run_id: str, swarm: Swarm) -> TargetRun:
    """Make a run that begins with a cache reset, and read it.

    Raises KvswarmError if it does not end well (InputError if it does not begin), or was stopped by the user.
    """
    code = run_headless(
        replace(swarm, results=folder.url, extra=("--no-report", "--cold-start", "reset", *swarm.extra)), run_id
    )
    if code:
        kind = InputError if code == InputError.exit_code else KvswarmError
        raise kind(f"the run {run_id} ended with exit code {code}; the lines above say why.")
    run = load(run_id, folder.url)
    if run.manifest.stopped_by == "signal":
        raise KvswarmError(f"the run {run_id} was stopped; it and those before it are kept in {folder.url}.")
    if len(run.manifest.targets) != 1:
        raise InputError(f"{swarm.target} are several targets; name one.")
    return run.only_target()


def new_name(what: str, scenario: str) -> str:
    """Name of the folder: time of the start, what is done, and the scenario."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{what}-{Path(scenario).stem}"
