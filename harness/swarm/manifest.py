"""run.json of a run that starts, and of one that has ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness import __version__
from harness.checks.target_record import target_record
from harness.record.manifest import ClockOffset, Manifest, WorkerRecord, clock_pair, versions
from harness.swarm.leg import Leg
from harness.swarm.partners import Partners
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


def record_first_requests(manifest: Manifest, leg: Leg) -> None:
    """Fill in what is known of a leg before its load, so that it is there even if nobody lives to see the end."""
    for state in leg.lanes:
        record = manifest.targets[state.number]
        record.cold_start = state.cold_start.words
        record.check = state.check


def record_leg(manifest: Manifest, made: Preparation, leg: Leg) -> None:
    """Fill in what a leg that has ended brought."""
    record_first_requests(manifest, leg)
    manifest.phases += leg.phases
    manifest.add_parts("requests", leg.request_parts)
    manifest.add_parts("harness_health", leg.health_parts)
    for state in leg.lanes:
        manifest.add_parts("server_metrics", state.metrics.parts)
        manifest.notes += [_named(made, state.lane, note) for note in state.metrics.notes]
    manifest.notes += leg.notes
    manifest.workers += [_worker_record(leg, client_id) for client_id in leg.planned]


def _worker_record(leg: Leg, client_id: str) -> WorkerRecord:
    word = leg.drained.get(client_id)
    return WorkerRecord(
        leg=leg.number,
        index=leg.planned[client_id],
        id=client_id,
        parts=None if word is None else len(word.parts),
        rows=None if word is None else word.rows,
        cpu_s=None if word is None else word.cpu_s,
        wall_s=None if word is None else word.wall_s,
        reason="lost" if word is None else word.reason,
        **({} if leg.partners is None else _partner(leg.partners, client_id)),
    )


def _partner(partners: Partners, client_id: str) -> dict[str, Any]:
    who = partners.credentials[client_id]
    before, after = partners.clocks_before.get(client_id), partners.clocks_after.get(client_id)
    return {
        "host": who.host,
        "python": who.python,
        "clock_before": None if before is None else ClockOffset(**asdict(before)),
        "clock_after": None if after is None else ClockOffset(**asdict(after)),
        "clock_ahead_ns": partners.clock_ahead_ns(client_id),
    }


def finish_manifest(manifest: Manifest, stopped_by: str, problems: Sequence[str]) -> None:
    """Fill in what is known at the end of the run."""
    manifest.state = "incomplete" if problems else "complete"
    manifest.stopped_by = stopped_by
    manifest.ended_ns = time.time_ns()
    manifest.clock_pairs.append(clock_pair("master end"))
    manifest.problems = list(problems)
