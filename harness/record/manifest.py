"""run.json: what was run, by whom, against whom, when, and which parts hold its rows."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator

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
    harness_health: list[Part] = Field(default_factory=list)


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
    """check, warmup, ramp, measure or drain."""
    targets: tuple[str, ...]
    """Names of the targets that it was spent on."""
    start_ns: int
    end_ns: int


class ClockOffset(BaseModel):
    """A worker's clock minus the master's, measured over the link between them."""

    model_config = ConfigDict(frozen=True)

    offset_ns: int
    error_ns: int
    """The true offset is within this of it: half of the quickest round trip."""


class WorkerRecord(BaseModel):
    """What one worker said at its end; null in parts, rows, cpu_s and wall_s: it said nothing."""

    model_config = ConfigDict(frozen=True)

    leg: int = 0
    """Number of the leg: targets that are loaded one after the other have one each."""
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
    host: str | None = None
    """Name of its machine. Null here and in all that follows: one process did everything."""
    python: str | None = None
    clock_before: ClockOffset | None = None
    """Just before the load."""
    clock_after: ClockOffset | None = None
    """Just after the drain; null also: it did not answer then."""
    clock_ahead_ns: int | None = None
    """What was taken off all times in its rows, so that they are by the master's clock: `clock_before.offset_ns`, or 0
    where that is within its error."""


class MetricNames(BaseModel):
    """One thing that the engine's metrics page tells, and the names under which it may stand there.

    `meaning` is one of `harness.engines.base.Meaning`.
    """

    model_config = ConfigDict(frozen=True)

    meaning: str
    names: tuple[str, ...] = Field(min_length=1)
    """Alternatives over the versions of the engine; the first that the page has counts, summed over its label sets."""
    kind: Literal["counter", "gauge"]
    counts: str
    """What exactly is counted and when, in words that follow the name."""
    labels: dict[str, str] = {}
    """Only series with these labels; empty: all."""
    absent_is_zero: bool = False
    """A page without the series, but with others of the engine's own metrics, means 0."""
    digits: int | None = None
    """Significant digits to which the page rounds a value; None: it shows all."""


class Probe(BaseModel):
    """One request of the start-up check."""

    model_config = ConfigDict(frozen=True)

    name: str
    """cold, repeat, half, part (where one more is needed to tell the block size), ids_cold or ids_repeat."""
    prompt_tokens: int | None
    """As the engine counted."""
    expected_cached_tokens: int | None
    """By the rules of the engine, at least; null: they need what is not known."""
    allowance_tokens: int = 0
    """How many more are within the rules: for a cold prompt the head of the chat template, which any chat may have
    left in the cache, and a few first words; for others what cannot be placed where the template or the lengths are
    not exact."""
    usage_cached_tokens: int | None
    """As the engine reported for this request; null: not reported."""
    counter_cached_tokens: int | None
    """Delta of the engine's counter around this request; null: it has none, or it cannot be read."""
    ttft_ms: float | None


class StartUpCheck(BaseModel):
    """What a few requests showed of the cache before the run."""

    model_config = ConfigDict(frozen=True)

    verdict: str
    """works, differs, caching-off, reporting-off, template-drift or unclear."""
    sentence: str
    """The verdict in words, with what to do."""
    granularity_tokens: int | None
    """Block or page size that the counts show; null: they do not tell it."""
    probes: tuple[Probe, ...]


class TargetRecord(BaseModel):
    """One target of the run. Null: not known (yet)."""

    model_config = ConfigDict(validate_assignment=True)

    name: str
    """As in the column `target` of both tables."""
    target: dict[str, Any]
    """Its description (`harness.engines.target.Target`) without secrets."""
    identity: dict[str, Any]
    """Who answered, as far as the engine tells: the fields of `harness.engines.base.Identity`."""
    metrics: list[MetricNames]
    """At most one of each meaning."""
    advice: dict[str, str]
    """caching, cached_tokens, metrics, reset -> how to start the server so that it offers them."""
    lexicon: dict[str, Any]
    """Summary of how exact lengths were made."""
    cold_start: str = ""
    """How its part of the run began cold, in words."""
    check: StartUpCheck | None = None


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
    targets: list[TargetRecord]
    """In the order in which they were named; no two have the same name."""
    together: bool = False
    """Whether the targets were loaded at the same time; else one after the other."""
    versions: dict[str, str]
    """Of python, the platform, and the packages that took part."""
    clock_pairs: list[ClockPair] = Field(default_factory=list)
    phases: list[Phase] = Field(default_factory=list)
    parts: Parts = Field(default_factory=Parts)
    workers: list[WorkerRecord] = Field(default_factory=list)
    problems: list[str] = Field(default_factory=list)
    """Sentences: why the results may not mean what they seem to."""
    notes: list[str] = Field(default_factory=list)

    @field_validator("targets")
    @classmethod
    def _distinct(cls, targets: list[TargetRecord]) -> list[TargetRecord]:
        names = [target.name for target in targets]
        if len(set(names)) < len(names):
            raise ValueError(f"the names of the targets must differ, found {', '.join(names)}")
        return targets

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

    def add_parts(
        self, table: Literal["requests", "server_metrics", "harness_health"], parts: Iterable[Sequence[Any]]
    ) -> None:
        """List (name, rows) pairs, as `PartWriter.parts` gives them, among the parts of `table`."""
        getattr(self.parts, table).extend(Part(name=name, rows=rows) for name, rows in parts)


def clock_pair(where: str) -> ClockPair:
    """Both clocks now."""
    return ClockPair(where=where, realtime_ns=time.time_ns(), monotonic_ns=time.monotonic_ns())


def versions(*packages: str) -> dict[str, str]:
    """Of Python, the platform and `packages`."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    return found | {package: version(package) for package in packages}


def _iso(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns // 1_000_000_000, UTC).isoformat().replace("+00:00", "Z")
