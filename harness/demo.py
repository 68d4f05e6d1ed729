"""`kvswarm demo`: a real llama.cpp server, all three kinds of session, prompt caching on and off, in one table."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from harness.analysis import Run, load
from harness.analysis.side_by_side import proof, side_by_side
from harness.analysis.summary import Summary, summarise
from harness.analysis.tables import Footnotes
from harness.embedded.options import LlamaCppOptions
from harness.embedded.server import running_server
from harness.errors import KvswarmError
from harness.launch import Swarm, run_headless
from harness.record.storage import Folder
from harness.report.document import write_report

SCENARIOS = ("demo-agent-loop", "demo-long-document", "demo-multi-round")
USERS, WORKERS = 4, 2


def demonstrate(results: str, seconds: int) -> int:
    """Run the six runs, print their tables, and check what they show. Returns the exit code."""
    console = Console()
    stamp = time.strftime("%Y%m%d-%H%M%S")
    runs: dict[str, list[Run]] = {scenario: [] for scenario in SCENARIOS}
    for caching in (True, False):
        word = "on" if caching else "off"
        console.rule(f"llama.cpp's server, prompt caching {word}")
        with running_server(LlamaCppOptions(cache_prompt=caching)) as server:
            for scenario in SCENARIOS:
                print(f"{scenario}: {USERS} users, {WORKERS} workers, {seconds} s against {server.url}", flush=True)
                run_id = f"{stamp}-{scenario}-cache-{word}"
                swarm = Swarm(
                    scenario, server.url, workers=WORKERS, users=USERS, run_time=f"{seconds}s", results=results
                )
                code = run_headless(swarm, run_id)
                if code:
                    raise KvswarmError(f"the run {run_id} ended with exit code {code}; the lines above say why.")
                runs[scenario].append(load(run_id, results))
    failures: list[str] = []
    notes = Footnotes()
    for scenario, pair in runs.items():
        summaries = {word: summarise(run.only_target()) for word, run in zip(("on", "off"), pair, strict=True)}
        console.rule(scenario)
        console.print(side_by_side("caching", summaries, notes))
        for line in proof("caching", summaries):
            console.print(line, highlight=False)
        failures += what_is_wrong(scenario, summaries["on"], summaries["off"])
    console.print("\n" + "\n".join(notes.lines), style="dim", highlight=False)
    for sentence in failures:
        sys.stderr.write(f"kvswarm: {sentence}\n")
    page = write_report(
        [run.manifest.run_id for run in runs[SCENARIOS[0]]], results, Folder.at(results), f"{stamp}-demo.html"
    )
    print(f"The runs are in {Path(results) / stamp}-*, each with its own report.html.")
    print(f"Open {page} in a browser: caching on beside off.")
    print("What to type next:")
    print("  make report                                     the tables of the newest run again")
    print("  make run SCENARIO=agent-loop TARGET=http://...   the same against your own server")
    return 1 if failures else 0


def what_is_wrong(scenario: str, on: Summary, off: Summary) -> Iterator[str]:
    """A sentence for each thing that a working engine, cache and client would not show."""
    for word, summary in (("on", on), ("off", off)):
        failed = sum(group.failed for group in summary.groups if group.warmth == "all")
        if not summary.groups:
            yield f"{scenario}, caching {word}: no request was measured"
        if failed:
            yield f"{scenario}, caching {word}: {failed} requests failed"
        if not (summary.agreement.cached.agrees and summary.agreement.prompt.agrees):
            yield f"{scenario}, caching {word}: rows and counters do not agree: {summary.agreement.sentence()}"
        if summary.planned_lengths.exact != summary.planned_lengths.compared:
            yield f"{scenario}, caching {word}: prompts have other lengths than planned"
    if not on.hit_rate.cached_tokens:
        yield f"{scenario}: caching is on but nothing was reused"
    if off.hit_rate.cached_some or off.hit_rate.cached_unknown:
        yield f"{scenario}: caching is off but not every request reports 0 cached tokens"
    ratios = [summary.warm_to_cold[0].ratio for summary in (on, off) if summary.warm_to_cold]
    if len(ratios) == 2 and ratios[0] is not None and ratios[1] is not None and ratios[0] >= ratios[1]:
        yield (
            f"{scenario}: warm requests do not gain from caching: "
            f"their TTFT is {ratios[0]:.2f} of cold ones, without caching {ratios[1]:.2f}"
        )
