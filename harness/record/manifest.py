"""run.json: what was run, by whom, against whom, when, and which parts hold its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field

from harness.record.schema import FORMAT_VERSION


class Part(BaseModel):
    """A Parquet file of the run; `name` is relative to the run's directory."""

    model_config = ConfigDict(frozen=True)

    name: str
    rows: int


class Parts(BaseModel):
    """All parts, by table."""

    requests: list[Part] = Field(default_factory=list)
    server_metrics: list[Part] = Field(default_factory=list)


class ClockPair(BaseModel):
    """Both clocks of one process at one moment."""

    model_config = ConfigDict(frozen=True)

    where: str
    """Process and moment, as "master start" or "worker 3 end"."""
    realtime_ns: int
    monotonic_ns: int


class Phase(BaseModel):
    """A stretch of the run."""

    model_config = ConfigDict(frozen=True)

    phase: str
    start_ns: int
    end_ns: int


class WorkerRecord(BaseModel):
    """What one worker said at its end; null in all but `reason`: it said nothing."""

    model_config = ConfigDict(frozen=True)

    index: int
    id: str
    parts: int | None
    rows: int | None
    cpu_s: float | None
    """CPU time of its process during the run."""
    wall_s: float | None
    """How long it took part. A worker that used most of one core (cpu_s near wall_s) may have been late."""
    reason: str
    """Why it ended, or why nothing was heard from it."""


class HitCounters(BaseModel):
    """Names of the engine's counters whose deltas give a token hit rate: cached / prompt.

    Names are alternatives over the versions of the engine, best first. `prompt` counts all prompt tokens if
    `prompt_includes_cached`, else only those that were computed.
    """

    model_config = ConfigDict(frozen=True)

    cached: tuple[str, ...]
    prompt: tuple[str, ...]
    prompt_includes_cached: bool


class Manifest(BaseModel):
    """Written when the run starts, as "running", and again when it ends. Null: not known (yet)."""

    model_config = ConfigDict(validate_assignment=True)

    format_version: int = FORMAT_VERSION
    kvswarm_version: str
    run_id: str
    state: Literal["running", "complete", "incomplete"] = "running"
    stopped_by: str | None = None
    """run-time, user, sigint, sigterm, ..."""
    started_ns: int
    ended_ns: int | None = None
    options: dict[str, Any]
    scenario_name: str
    scenario: dict[str, Any]
    target: dict[str, Any]
    """The target's description without secrets."""
    identity: dict[str, Any]
    """Who answered, as far as the engine tells."""
    hit_counters: HitCounters | None
    lexicon: dict[str, Any]
    """Summary of how exact lengths were made."""
    versions: dict[str, str]
    """Of python, locust, gevent, pyarrow and the platform."""
    clock_pairs: list[ClockPair] = Field(default_factory=list)
    phases: list[Phase] = Field(default_factory=list)
    cold_start: str
    """How the run began cold, in words."""
    parts: Parts = Field(default_factory=Parts)
    workers: list[WorkerRecord] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list)
    """Sentences: why the results may not mean what they seem to."""
    notes: list[str] = Field(default_factory=list)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def started(self) -> str:
        """`started_ns` as ISO 8601, UTC."""
        return _iso(self.started_ns)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ended(self) -> str | None:
        """`ended_ns` as ISO 8601, UTC."""
        return None if self.ended_ns is None else _iso(self.ended_ns)

    def add_parts(self, table: Literal["requests", "server_metrics"], parts: Iterable[Sequence[Any]]) -> None:
        """List (name, rows) pairs, as `PartWriter.parts` gives them, among the parts of `table`."""
        getattr(self.parts, table).extend(Part(name=name, rows=rows) for name, rows in parts)


def _iso(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns // 1_000_000_000, UTC).isoformat().replace("+00:00", "Z")
