"""`kvswarm demo-engines`: one seeded agent loop on the real server of each engine that is here, in one table."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console

from harness.analysis import load
from harness.analysis.side_by_side import proof, side_by_side
from harness.analysis.summary import Summary, summarise
from harness.analysis.tables import Footnotes
from harness.embedded.engine_options import KINDS, EngineOptions
from harness.embedded.environments import installed
from harness.embedded.options import LlamaCppOptions
from harness.embedded.server import running_server
from harness.errors import KvswarmError
from harness.launch import Swarm, run_headless
from harness.record.storage import Folder
from harness.report.document import write_report

SCENARIO = "demo-engines"
USERS, WORKERS = 2, 2


def demonstrate(
    results: str, seconds: int, servers: Mapping[str, LlamaCppOptions | EngineOptions] | None = None
) -> int:
    """One run on each engine, one after the other; print their table and check what it shows. Returns the exit code.

    `servers` are by the name of the engine; None: those that are here.
    """
    console = Console()
    stamp = time.strftime("%Y%m%d-%H%M%S")
    summaries: dict[str, Summary] = {}
    servers = servers_here() if servers is None else servers
    for engine, options in servers.items():
        console.rule(options.title)
        with running_server(options) as server:
            print(f"{SCENARIO}: {USERS} users, {WORKERS} workers, {seconds} s against {server.url}", flush=True)
            run_id = f"{stamp}-{SCENARIO}-{engine}"
            swarm = Swarm(SCENARIO, server.url, workers=WORKERS, users=USERS, run_time=f"{seconds}s", results=results)
            code = run_headless(swarm, run_id)
            if code:
                raise KvswarmError(f"the run {run_id} ended with exit code {code}; the lines above say why.")
        summaries[engine] = summarise(load(run_id, results).only_target())
    notes = Footnotes()
    console.rule(SCENARIO)
    console.print(side_by_side("engine", summaries, notes))
    for line in (*proof("engine", summaries), *verdicts(summaries)):
        console.print(line, highlight=False, soft_wrap=True)
    console.print("\n" + "\n".join(notes.lines), style="dim", highlight=False)
    failures = [sentence for engine, summary in summaries.items() for sentence in what_is_wrong(engine, summary)]
    for sentence in failures:
        sys.stderr.write(f"kvswarm: {sentence}\n")
    names = [f"{stamp}-{SCENARIO}-{engine}" for engine in servers]
    page = write_report(names, results, Folder.at(results), f"{stamp}-{SCENARIO}.html")
    print(f"Open {page} in a browser: the engines side by side, with plots.")
    print(f"The runs are in {Path(results) / stamp}-*.")
    missing = [engine for engine in KINDS if engine not in servers]
    if missing:
        print(f"Not here yet: {', '.join(missing)}; `make test-engines ENGINE={missing[0]}` installs and tests one.")
    return 1 if failures else 0


def servers_here() -> dict[str, LlamaCppOptions | EngineOptions]:
    """llama.cpp's server, and those that have been installed, by the name of the engine."""
    return {"llama-cpp": LlamaCppOptions(), **{name: kind() for name, kind in KINDS.items() if installed(name)}}


def verdicts(summaries: Mapping[str, Summary]) -> Iterator[str]:
    """What the start-up check said of each engine, a line each."""
    for engine, summary in summaries.items():
        yield f"engine {engine}: {'no start-up check was made' if summary.check is None else summary.check.sentence}"


def what_is_wrong(engine: str, summary: Summary) -> Iterator[str]:
    """A sentence for each thing that a working engine, cache and client would not show."""
    if not summary.groups:
        yield f"{engine}: no request was measured"
    failed = sum(group.failed for group in summary.groups if group.warmth == "all")
    if failed:
        yield f"{engine}: {failed} requests failed"
    if summary.check is None or summary.check.verdict != "works":
        yield f"{engine}: the start-up check did not find that the cache works"
    if summary.agreement.reason is None and not summary.agreement.sentence().startswith("exactly equal"):
        yield f"{engine}: rows and counters do not agree: {summary.agreement.sentence()}"
    if summary.planned_lengths.exact != summary.planned_lengths.compared:
        yield f"{engine}: prompts have other lengths than planned"
    if not summary.hit_rate.cached_tokens:
        yield f"{engine}: nothing was reused"
