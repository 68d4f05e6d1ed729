"""`kvswarm find`: the highest rate at which sessions may arrive so that an objective is met."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.analysis.goodput import Goodput, goodput
from harness.analysis.goodput_table import goodput_table, sentences
from harness.analysis.run import TargetRun
from harness.analysis.side_by_side import side_by_side
from harness.analysis.summary import summarise
from harness.analysis.tables import Footnotes
from harness.launch import Swarm
from harness.record.storage import Folder
from harness.report.document import write_report
from harness.report.side import MOST_SIDES
from harness.slo.judgement import Count, judge
from harness.slo.objective import Limit, parse_slo
from harness.slo.search import Answer, Plan, find_rate
from harness.variants import run_into, varied

NOTE = "find.json"
"""In the folder of a search: the objective, every look at a rate, and the answer once there is one."""
FOUND, NOT_MET, UNDECIDED = 0, 4, 5
"""Exit codes: a rate meets the objective; not even the lowest does; it could not be told of any."""


@dataclass(slots=True)
class _Looks:
    """All runs of a search, and what they showed."""

    swarm: Swarm
    limits: tuple[Limit, ...]
    plan: Plan
    folder: Folder
    arrivals: str
    made: list[dict[str, Any]] = field(default_factory=list)
    """As they stand in the note."""
    latest: dict[float, tuple[TargetRun, Goodput]] = field(default_factory=dict)
    """Of each rate the look that was made last."""

    def look(self, rate: float, length_s: float) -> Sequence[Count]:
        """Load the target at that rate for so long, in a run of its own."""
        run_id = f"{len(self.made):02d}-rate-{rate:g}"
        print(f"rate {rate:g} for {length_s:.0f} s", flush=True)
        swarm = varied(varied(self.swarm, f"arrivals={self.arrivals}"), f"rate={rate:g}")
        run = run_into(self.folder, run_id, replace(swarm, run_time=f"{length_s:.0f}s"))
        found = goodput(run, self.limits)
        self.latest[rate] = run, found
        self.made.append(self._as_json(run_id, rate, length_s, found))
        self.write(None)
        print(f"rate {rate:g}: {self.made[-1]['verdict']}", flush=True)
        return found.counts

    def _as_json(self, run_id: str, rate: float, length_s: float, found: Goodput) -> dict[str, Any]:
        error = self.plan.error
        counts = []
        for count in found.counts:
            low, high = count.share(error)
            told = {"beyond": count.beyond, "of": count.of, "worth": count.worth}
            counts.append({"limit": count.limit.text, **told, "share_low": low, "share_high": high})
        return {
            "run": run_id,
            "rate": rate,
            "length_s": length_s,
            "verdict": judge(found.counts, error),
            "goodput_per_s": found.per_s,
            "goodput_share": found.share,
            "requests": found.requests,
            "good": found.good,
            "failed": found.failed,
            "refused": found.refused,
            "unknown": found.unknown,
            "disturbed": found.disturbed,
            "limits": counts,
        }

    def write(self, answer: Answer | None) -> None:
        """The note, with what is known so far."""
        told: dict[str, Any] = {
            "slo": ",".join(limit.text for limit in self.limits),
            "scenario": self.swarm.scenario,
            "target": self.swarm.target,
            "arrivals": self.arrivals,
            "confidence": self.plan.confidence,
            "precision": self.plan.precision,
            "rate_from": self.plan.lowest,
            "rate_to": self.plan.highest,
            "error_of_a_look": self.plan.error,
            "answer": None,
            "looks": self.made,
        }
        if answer is not None:
            best = None if answer.met is None else self.latest[answer.met][1]
            told["answer"] = {
                "met": answer.met,
                "not_met": answer.not_met,
                "undecided": answer.undecided,
                "goodput_per_s": None if best is None else best.per_s,
                "goodput_share": None if best is None else best.share,
            }
        self.folder.write(NOTE, json.dumps(told, indent=1).encode())

    def write_report(self) -> None:
        """One page with the last look at each rate; unless it was not wanted, or they are too many for a page."""
        names = {look["rate"]: look["run"] for look in self.made}
        if len(names) <= MOST_SIDES and "--no-report" not in self.swarm.extra:
            goodput_per_s = {names[rate]: of_rate.per_s for rate, (_, of_rate) in self.latest.items()}
            by_rate = [names[rate] for rate in sorted(names)]
            page = write_report(by_rate, self.folder.url, self.folder, goodput_per_s=goodput_per_s)
            print(f"The report with plots is {page}.")


def find(swarm: Swarm, slo: str, plan: Plan, arrivals: str, name: str) -> int:
    """Search, print the tables and the answer, and return the exit code.

    The runs lie in one folder, `name` below the results, with `find.json` beside them. Raises InputError if objective,
    plan or options cannot be used, KvswarmError if a run does not end well: those before it are kept.
    """
    limits = parse_slo(slo)
    plan.check()
    looks = _Looks(swarm, limits, plan, Folder.at(swarm.results).child(name), arrivals)
    answer = find_rate(plan, looks.look)
    looks.write(answer)
    console, notes = Console(), Footnotes()
    console.rule(f"{Path(swarm.scenario).stem}: rate")
    summaries = {f"{rate:g}": summarise(run) for rate, (run, _) in sorted(looks.latest.items())}
    console.print(side_by_side("rate", summaries, notes))
    console.print()
    found = {rate: of_rate for rate, (_, of_rate) in looks.latest.items()}
    console.print(goodput_table(answer, found, notes))
    console.print("\n" + "\n".join(notes.lines) + "\n", style="dim", highlight=False)
    for sentence in sentences(answer, found):
        console.print(sentence, highlight=False)
    print(f"The runs are in {looks.folder.url}, the numbers in {looks.folder.name_of(NOTE)}.")
    looks.write_report()
    if answer.met is not None:
        return FOUND
    return NOT_MET if answer.not_met == plan.lowest else UNDECIDED
