"""`kvswarm demo-sim`: 64 agents on a simulated GPU, as vLLM and as SGLang, and the pressure at which hits collapse."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from harness.analysis import load
from harness.analysis.cliff import MEANING, Place, cliff_table, place
from harness.analysis.cliff_plot import cliff_plot
from harness.analysis.summary import Summary, summarise
from harness.embedded.server import running_server
from harness.errors import KvswarmError
from harness.launch import Swarm, run_headless
from harness.record.storage import Folder
from harness.report.document import write_report
from harness.sim.options import SimOptions

SCENARIO = "demo-sim"
PRESSURES = ("0.5", "1", "2", "4")
USERS, WORKERS = 64, 1
SPAWN_RATE = 16
"""Agents that begin in a second: all at once would be a herd that nothing is cached for."""
KV_TOKENS = 32_768
"""So small that 64 agents can ask for four times as much."""
ENGINES = {
    "vLLM": SimOptions(manner="vllm", preset="h100-8b", kv_tokens=KV_TOKENS, context_tokens=8192),
    "SGLang": SimOptions(manner="sglang", preset="h100-8b", kv_tokens=KV_TOKENS, context_tokens=8192),
}
PLOT = "cliff.svg"


def demonstrate(results: str, seconds: int, pressures: Sequence[str] = PRESSURES) -> int:
    """One run for each pressure, with the engines one after the other; a table and a picture. Returns the exit code."""
    console = Console()
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{SCENARIO}"
    folder = Folder.at(results).child(name)
    cliffs: dict[str, list[Place]] = {engine: [] for engine in ENGINES}
    failures: list[str] = []
    with ExitStack() as servers:
        urls = [servers.enter_context(running_server(options)).url for options in ENGINES.values()]
        for pressure in pressures:
            console.rule(f"{USERS} agents, pressure {pressure}")
            swarm = Swarm(
                SCENARIO,
                ",".join(urls),
                changes=f"pressure={pressure}",
                workers=WORKERS,
                users=USERS,
                run_time=f"{seconds}s",
                results=folder.url,
                extra=("--no-report", "--cold-start", "reset", "--spawn-rate", str(SPAWN_RATE)),
            )
            run_id = f"pressure-{pressure}"
            code = run_headless(swarm, run_id)
            if code:
                raise KvswarmError(f"the run {run_id} ended with exit code {code}; the lines above say why.")
            for engine, run in zip(ENGINES, load(run_id, folder.url).by_target(), strict=True):
                summary = summarise(run)
                cliffs[engine].append(place(pressure, summary))
                failures += what_is_wrong(f"{engine}, pressure {pressure}", summary)
    console.rule(SCENARIO)
    console.print(cliff_table(cliffs))
    console.print(f"\n{MEANING}", style="dim", highlight=False)
    title = f"{USERS} agents on a simulated H100 with Llama-3.1-8B"
    subtitle = f"Agents that share the texts of repositories; {KV_TOKENS:,} tokens of KV cache; {seconds} s a run."
    folder.write(PLOT, cliff_plot(title, subtitle, cliffs).encode())
    for sentence in failures:
        sys.stderr.write(f"kvswarm: {sentence}\n")
    page = write_report([f"pressure-{pressure}" for pressure in pressures], folder.url, folder)
    print(f"Open {page} in a browser: both engines under every pressure, with plots.")
    print(f"The runs are in {folder.url}, the picture is {folder.name_of(PLOT)}.")
    print("What to type next:")
    print(f"  kvswarm report {Path(folder.url) / f'pressure-{pressures[-1]}'}   where the hit rate went, step by step")
    print("  kvswarm serve sim --help                    a simulated engine of your own")
    return 1 if failures else 0


def what_is_wrong(what: str, summary: Summary) -> Iterator[str]:
    """A sentence for each thing that a working engine, cache and client would not show."""
    if not summary.groups:
        yield f"{what}: no request was measured"
    failed = sum(group.failed for group in summary.groups if group.warmth == "all")
    if failed:
        yield f"{what}: {failed} requests failed"
    if summary.agreement.reason is None and not summary.agreement.sentence().startswith("exactly equal"):
        yield f"{what}: rows and counters do not agree: {summary.agreement.sentence()}"
    if summary.planned_lengths.exact != summary.planned_lengths.compared:
        yield f"{what}: prompts have other lengths than planned"
    if not summary.hit_rate.cached_tokens:
        yield f"{what}: nothing was reused"
