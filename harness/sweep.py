"""`kvswarm sweep` and `kvswarm cost-of`: one scenario in several variants, a run each, in one table."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.analysis.cost import cost
from harness.analysis.prediction import MEANING, points, prediction_plot, prediction_table
from harness.analysis.run import TargetRun
from harness.analysis.side_by_side import proof, side_by_side
from harness.analysis.summary import summarise
from harness.analysis.tables import Footnotes
from harness.errors import InputError
from harness.launch import Swarm
from harness.record.storage import Folder
from harness.report.document import write_report
from harness.report.side import MOST_SIDES
from harness.variants import run_into, varied

NOTE = "sweep.json"
"""In the folder of a sweep: the key, and the run of each of its values."""
PLOT = "sweep.svg"
"""There, too: hit rate, the model's prediction and TTFT over the values."""
MOST_POINTS = 100


def values_of(text: str) -> tuple[str, list[str]]:
    """(key, values) of `key=a,b,c` or `key=first:last:step`, both ends included. Raises InputError if it is neither."""
    key, equals, values = text.partition("=")
    if not equals or not key.strip() or not values.strip():
        raise InputError(f"--over is {text!r}: expected key=a,b,c or key=first:last:step, such as pressure=0.5,1,2")
    found = _stepped(text, values) if ":" in values else [value.strip() for value in values.split(",")]
    if not all(found):
        raise InputError(f"--over is {text!r}: a value is missing between two commas")
    if twice := next((value for value in found if found.count(value) > 1), None):
        raise InputError(f"--over is {text!r}: {twice} stands there twice")
    if len(found) > MOST_POINTS:
        raise InputError(f"--over is {text!r}: {len(found)} runs are too many; at most {MOST_POINTS} fit in a sweep")
    return key.strip(), found


def _stepped(text: str, values: str) -> list[str]:
    try:
        first, last, step = (float(part) for part in values.split(":"))
    except ValueError:
        raise InputError(f"--over is {text!r}: expected three numbers, first:last:step") from None
    if step <= 0 or last < first:
        raise InputError(f"--over is {text!r}: the step must be above 0, and the last value not below the first")
    # A little room, as 0.1 + 0.2 is not quite 0.3.
    steps = int((last - first) / step + 1e-6)
    return [f"{first + number * step:.10g}" for number in range(min(steps, MOST_POINTS) + 1)]


def sweep(swarm: Swarm, over: str, name: str) -> int:
    """A run for each value of a key of scenario or load, each begun with a cache reset; then a table and a picture.

    The runs lie in one folder, `name` below the results. Returns the exit code.
    """
    key, values = values_of(over)
    variants = {value: f"{key}={value}" for value in values}
    summaries = {value: summarise(run) for value, run in run_variants(swarm, name, key, variants).items()}
    console, notes = Console(), Footnotes()
    console.rule(f"{Path(swarm.scenario).stem}: {key}")
    console.print(side_by_side(key, summaries, notes))
    for line in proof(key, summaries):
        console.print(line, highlight=False)
    found = points(summaries)
    notes.need(MEANING)
    console.print()
    console.print(prediction_table(key, found))
    console.print("\n" + "\n".join(notes.lines), style="dim", highlight=False)
    folder = Folder.at(swarm.results).child(name)
    folder.write(PLOT, prediction_plot(f"{Path(swarm.scenario).stem}: {key}", key, found).encode())
    print(f"The runs are in {folder.url}, the picture is {folder.name_of(PLOT)}.")
    _write_report(swarm, folder)
    return 0


def cost_of(swarm: Swarm, fault: str, rate: float, name: str) -> int:
    """The scenario without and with an arrangement fault, on the very same sessions, and what the fault costs."""
    variants = {"none": "fault=null", fault: f"fault.kind={fault}; fault.rate={rate:g}"}
    runs = run_variants(swarm, name, "fault", variants)
    summaries = {value: summarise(run) for value, run in runs.items()}
    console, notes = Console(), Footnotes()
    console.rule(f"{Path(swarm.scenario).stem}: {fault}")
    console.print(side_by_side("fault", summaries, notes))
    change = f"{fault} in {rate:.0%} of the requests"
    console.print(cost(runs["none"], runs[fault]).sentence(change), highlight=False)
    console.print("\n" + "\n".join(notes.lines), style="dim", highlight=False)
    _write_report(swarm, Folder.at(swarm.results).child(name))
    return 0


def _write_report(swarm: Swarm, folder: Folder) -> None:
    """One page with all runs of the folder; unless it was not wanted, or they are too many for a page."""
    names = list(json.loads(folder.read(NOTE))["runs"].values())
    if len(names) > MOST_SIDES:
        print(f"{len(names)} runs are too many for a page of plots: name {MOST_SIDES} to kvswarm report --html.")
    elif "--no-report" not in swarm.extra:
        print(f"The report with plots is {write_report(names, folder.url, folder)}.")


def run_variants(swarm: Swarm, name: str, setting: str, variants: Mapping[str, str]) -> dict[str, TargetRun]:
    """Run each variant (its name in the table -> what it sets) into the folder `name` of the results.

    Raises KvswarmError if a run does not end well: those before it are kept.
    """
    folder = Folder.at(swarm.results).child(name)
    swarms = {value: varied(swarm, changes) for value, changes in variants.items()}
    recorded: dict[str, TargetRun] = {}
    runs: dict[str, str] = {}
    for number, (value, of_variant) in enumerate(swarms.items()):
        run_id = f"{number:02d}-{re.sub(r'[^A-Za-z0-9._-]+', '-', f'{setting}-{value}')[:80]}"
        print(f"{setting} {value} ({number + 1} of {len(variants)})", flush=True)
        runs[value] = run_id
        try:
            recorded[value] = run_into(folder, run_id, of_variant)
        finally:
            folder.write(NOTE, json.dumps(_note(swarm, setting, variants, runs), indent=1).encode())
    return recorded


def _note(swarm: Swarm, setting: str, variants: Mapping[str, str], runs: Mapping[str, str]) -> dict[str, Any]:
    """What a reader of the folder has to know."""
    return {
        "setting": setting,
        "scenario": swarm.scenario,
        "target": swarm.target,
        "sets": dict(variants),
        "runs": dict(runs),
    }
