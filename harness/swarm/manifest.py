"""run.json of a run that starts, and of one that has ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict

from harness import __version__
from harness.checks.target_record import target_record
from harness.record.manifest import Manifest, WorkerRecord, clock_pair, versions
from harness.swarm.leg import Leg
from harness.swarm.prepare import Lane, Preparation


def first_manifest(made: Preparation) -> Manifest:
    """The manifest of a run that is about to begin."""
    notes = [_named(made, lane, note) for lane in made.lanes for note in lane.lexicon.notes]
    return Manifest(
        kvswarm_version=__version__,
        run_id=made.run_id,
        started_ns=time.time_ns(),
        options=asdict(made.options),
        scenario_name=made.scenario.name,
        scenario=made.scenario.model_dump(mode="json"),
        targets=[target_record(lane.engine, lane.identity, lane.lexicon) for lane in made.lanes],
        together=made.options.together,
        versions=versions("locust", "gevent", "pyarrow", "pydantic"),
        clock_pairs=[clock_pair("master start")],
        notes=list(dict.fromkeys(notes)),
    )


def _named(made: Preparation, lane: Lane, note: str) -> str:
    """A note as it stands in run.json: with its target's name where there are several."""
    return note if len(made.lanes) == 1 else f"{lane.target.name}: {note}"


def record_leg(manifest: Manifest, made: Preparation, leg: Leg) -> None:
    """Fill in what a leg that has ended brought."""
    manifest.phases += leg.phases
    manifest.add_parts("requests", leg.request_parts)
    for state in leg.lanes:
        record = manifest.targets[state.number]
        record.cold_start = state.cold_start.words
        record.check = state.check
        manifest.add_parts("server_metrics", state.metrics.parts)
        manifest.notes += [_named(made, state.lane, note) for note in state.metrics.notes]
    for client_id, number in leg.planned.items():
        word = leg.drained.get(client_id)
        manifest.workers.append(
            WorkerRecord(
                leg=leg.number,
                index=number,
                id=client_id,
                parts=None,
                rows=None,
                cpu_s=None,
                wall_s=None,
                reason="lost",
            )
            if word is None
            else WorkerRecord(
                leg=leg.number,
                index=number,
                id=client_id,
                parts=len(word.parts),
                rows=word.rows,
                cpu_s=word.cpu_s,
                wall_s=word.wall_s,
                reason=word.reason,
            )
        )


def finish_manifest(manifest: Manifest, stopped_by: str, problems: Sequence[str]) -> None:
    """Fill in what is known at the end of the run."""
    manifest.state = "incomplete" if problems else "complete"
    manifest.stopped_by = stopped_by
    manifest.ended_ns = time.time_ns()
    manifest.clock_pairs.append(clock_pair("master end"))
    manifest.problems = list(problems)
