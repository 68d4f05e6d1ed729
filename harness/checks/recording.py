"""The run directory of a check that one process makes: rows, server metrics and run.json, complete or not."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from harness import __version__
from harness.checks.prompts import SCENARIO
from harness.checks.target_record import target_record
from harness.collector import Moment, Row, open_collector
from harness.engines.base import Identity
from harness.engines.openai import OpenAIEngine
from harness.record.manifest import Manifest, Phase, clock_pair, versions
from harness.record.run_directory import RunDirectory, create
from harness.record.schema import REQUESTS, SERVER_METRICS
from harness.record.writer import PartWriter
from harness.workload.lexicon import Lexicon


class Recording:
    """A context: run.json says "running" inside of it, and afterwards how it ended."""

    def __init__(
        self,
        run_id: str,
        command: str,
        engine: OpenAIEngine,
        identity: Identity,
        lexicon: Lexicon,
        results: str,
        options: Mapping[str, Any],
    ) -> None:
        """Makes the directory below `results`. Raises InputError if it cannot be made."""
        self._engine = engine
        self._directory: RunDirectory = create(results, run_id)
        self.requests = PartWriter(self._directory.url, "requests/part", REQUESTS)
        self._metrics = PartWriter(self._directory.url, "server_metrics/part", SERVER_METRICS)
        self.collector = open_collector(engine.target, self._keep)
        self._measuring_ns: int | None = None
        self.manifest = Manifest(
            kvswarm_version=__version__,
            run_id=run_id,
            started_ns=time.time_ns(),
            options={"command": command, **options},
            scenario_name=command,
            scenario=SCENARIO.model_copy(update={"name": command}).model_dump(mode="json"),
            targets=[target_record(engine, identity, lexicon)],
            versions=versions("gevent", "pyarrow", "pydantic"),
            clock_pairs=[clock_pair("start")],
            notes=list(lexicon.notes),
        )

    @property
    def run_id(self) -> str:
        return self._directory.run_id

    @property
    def url(self) -> str:
        return self._directory.url

    def begin_measuring(self) -> None:
        """The warm-up is over; the last scrape before this is what counters are held against."""
        self._measuring_ns = time.time_ns()
        self._border("warmup_end")

    def __enter__(self) -> Recording:
        self._directory.write_manifest(self.manifest)
        self.collector.scrape_now("before")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        measured_ns = time.time_ns()
        if error is None:
            self._border("after")
        self.requests.flush()
        self._metrics.flush()
        manifest = self.manifest
        manifest.add_parts("requests", self.requests.parts)
        manifest.add_parts("server_metrics", self._metrics.parts)
        name = self._engine.target.name
        begin_ns = self._measuring_ns or manifest.started_ns
        for phase, start_ns, end_ns in (
            ("warmup", manifest.started_ns, begin_ns),
            ("measure", begin_ns, measured_ns),
        ):
            manifest.phases.append(Phase(phase=phase, targets=(name,), start_ns=start_ns, end_ns=end_ns))
        manifest.problems += [f"{name}: {restart}" for restart in self.collector.restarts]
        if error is not None:
            manifest.problems.append(f"it was ended by {kind.__name__ if kind else 'an error'}: {error}")
        manifest.state = "incomplete" if manifest.problems else "complete"
        manifest.stopped_by = "its end" if error is None else "error" if isinstance(error, Exception) else "user"
        manifest.ended_ns = time.time_ns()
        manifest.clock_pairs.append(clock_pair("end"))
        self._directory.write_manifest(manifest)

    def _border(self, moment: Moment) -> None:
        """Pages that could not be read are not waited for."""
        if self.collector.available:
            self.collector.settle(moment, self._engine.is_idle)
        else:
            self.collector.scrape_now(moment)

    def _keep(self, rows: list[Row]) -> None:
        for row in rows:
            self._metrics.add({"run_id": self.run_id, **row})
