"""run.json of a run that starts, and of one that has ended."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from harness import __version__
from harness.record.manifest import ClockPair, HitCounters, Manifest, WorkerRecord
from harness.swarm.plan import Drained
from harness.swarm.prepare import Preparation
from harness.workload.lexicon import Lexicon

PACKAGES = ("locust", "gevent", "pyarrow", "pydantic")


def first_manifest(made: Preparation) -> Manifest:
    """The manifest of a run that is about to begin."""
    counters = made.engine.hit_counters
    return Manifest(
        kvswarm_version=__version__,
        run_id=made.run_id,
        started_ns=time.time_ns(),
        options=asdict(made.options),
        scenario_name=made.scenario.name,
        scenario=made.scenario.model_dump(mode="json"),
        target=made.target.model_dump(mode="json", exclude={"headers"}),
        identity=asdict(made.identity),
        hit_counters=None if counters is None else HitCounters(**asdict(counters)),
        lexicon=_lexicon(made.lexicon),
        versions={
            "python": platform.python_version(),
            "platform": platform.platform(),
            **{package: version(package) for package in PACKAGES},
        },
        clock_pairs=[_clock_pair("master start")],
        cold_start=made.cold_start,
        notes=list(made.lexicon.notes),
    )


def finish_manifest(
    manifest: Manifest,
    stopped_by: str,
    request_parts: Iterable[Sequence[Any]],
    metric_parts: Iterable[Sequence[Any]],
    workers: Mapping[str, Drained | None],
    problems: Sequence[str],
) -> None:
    """Fill in what is known at the end. `workers`: by Locust's client id, in order; None: it never answered."""
    manifest.state = "incomplete" if problems else "complete"
    manifest.stopped_by = stopped_by
    manifest.ended_ns = time.time_ns()
    manifest.add_parts("requests", request_parts)
    manifest.add_parts("server_metrics", metric_parts)
    manifest.clock_pairs.append(_clock_pair("master end"))
    manifest.problems = list(problems)
    for index, (client_id, word) in enumerate(workers.items()):
        manifest.workers.append(
            WorkerRecord(index=index, id=client_id, parts=None, rows=None, cpu_s=None, wall_s=None, reason="lost")
            if word is None
            else WorkerRecord(
                index=index,
                id=client_id,
                parts=len(word.parts),
                rows=word.rows,
                cpu_s=word.cpu_s,
                wall_s=word.wall_s,
                reason=word.reason,
            )
        )


def _lexicon(lexicon: Lexicon) -> dict[str, Any]:
    """How exact lengths were made, without the words and cuts themselves."""
    return {
        "words": len(lexicon.words),
        "template": lexicon.template.to_json(),
        "documents_real": lexicon.documents_real,
        "exact": lexicon.exact,
    }


def _clock_pair(where: str) -> ClockPair:
    return ClockPair(where=where, realtime_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())
