"""Two runs that were recorded before, with the cache on and off: whether it paid."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.checks.laboratory import Finding
from harness.checks.prove_evidence import Counted
from harness.checks.prove_pair import judge_pair, times_words
from harness.checks.prove_statistics import Interval, median_interval
from harness.checks.prove_verdict import NOT_SHOWN, SHOWN, UNKNOWN
from harness.collector import Sample, value
from harness.engines.base import Metric
from harness.errors import InputError, RecordError
from harness.record.manifest import MetricNames
from harness.record.reader import RecordedRun, open_run

AGAIN_SHARE = 0.75
"""A request of which so much was sent before, in the same run, is one that sends a prefix again."""
NEW_SHARE = 0.1
"""One of which no more than this was sent before is cold."""
ALIKE = 0.05
"""Prompts of two runs are compared if their lengths differ by this share at most."""
EXIT_CODES: Mapping[Counted, int] = {"hit": SHOWN, "none": NOT_SHOWN, "some": UNKNOWN, "unknown": UNKNOWN}

Place = tuple[int, int]
"""Session and turn."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One measured request that was answered."""

    prompt_tokens: int
    shared_tokens: int
    """From the first on, sent before in the same run."""
    cached_tokens: int | None
    ttft_ms: float

    @property
    def is_again(self) -> bool:
        return self.shared_tokens >= AGAIN_SHARE * self.prompt_tokens

    @property
    def is_new(self) -> bool:
        return self.shared_tokens <= NEW_SHARE * self.prompt_tokens


@dataclass(frozen=True, slots=True)
class Side:
    """What one of the two runs says of its cache."""

    state: Counted
    """By the answers, else by the engine's counter."""
    words: str
    hit_tokens: int | None
    shared_tokens: int
    """Of the requests that sent a prefix again: what they could hit."""


def are_runs(names: Sequence[str], results: str) -> bool:
    """Whether both names are those of runs, not of targets. Raises InputError if just one of them is."""
    found = [name for name in names if _is_run(name, results)]
    if len(found) == 1:
        other = next(name for name in names if name not in found)
        raise InputError(f"{found[0]} is a run, and {other} is none: name two runs, or two targets.")
    return bool(found)


def _is_run(name: str, results: str) -> bool:
    if name.startswith(("http://", "https://")):
        return False
    try:
        open_run(name, results, strict=False)
    except RecordError:
        return True  # a damaged one, which is told when it is opened
    except InputError:
        return False
    return True


def compare_runs(names: Sequence[str], results: str) -> tuple[Finding, list[RecordedRun]]:
    """The first run against the second: as `harness.checks.prove_pair.compare`, by what is recorded.

    `names`: two ids of runs below `results`, or their directories. Raises InputError if one of them is no complete run
    of one target, or if they are not of the same scenario; RecordError if one cannot be read.
    """
    runs = [open_run(name, results) for name in names]
    for run in runs:
        _usable(run)
    scenarios = [run.manifest.scenario_name for run in runs]
    if scenarios[0] != scenarios[1]:
        raise InputError(
            f"{runs[0].manifest.run_id} is a run of {scenarios[0]}, {runs[1].manifest.run_id} one of {scenarios[1]}: "
            "name two runs that sent the same."
        )
    a, b = (dict(requests(run)) for run in runs)
    sides = [side([*of_run.values()], counted(run)) for of_run, run in zip((a, b), runs, strict=True)]
    warm, cold = ratio(a, b, again=True), ratio(a, b, again=False)
    verdict, code, words = judge_pair(EXIT_CODES[sides[0].state], EXIT_CODES[sides[1].state], warm)
    labels = [f"{run.manifest.run_id} ({run.manifest.targets[0].name})" for run in runs]
    told = " ".join(f"{label}: {one.words}." for label, one in zip(labels, sides, strict=True))
    numbers: dict[str, Any] = {
        "warm": None if warm is None else asdict(warm),
        "cold": None if cold is None else asdict(cold),
        **{name: asdict(one) for name, one in zip(("a", "b"), sides, strict=True)},
    }
    return Finding(verdict, code, f"{words}{times_words(warm, cold, labels)} {told}", numbers), runs


def requests(run: RecordedRun) -> Iterator[tuple[Place, Sent]]:
    """The measured requests of a run that were answered; what each of them shares is known by all that were sent."""
    columns = ["phase", "status", "session", "turn", "t_send", "path", "path_tokens"]
    columns += ["planned_prompt_tokens", "cached_tokens", "ttft_ms"]
    known: dict[tuple[int, int, int], int] = {}
    for row in run.requests().select(columns).sort_by("t_send").to_pylist():
        if row["t_send"] is None or row["path"] is None:
            continue
        shared = _shared(known, list(zip(row["path"], row["path_tokens"], strict=True)))
        if row["phase"] == "measure" and row["status"] == "ok" and row["session"] is not None and row["ttft_ms"]:
            place = row["session"], row["turn"]
            yield place, Sent(row["planned_prompt_tokens"], shared, row["cached_tokens"], row["ttft_ms"])


def _shared(known: dict[tuple[int, int, int], int], path: Sequence[tuple[int, int]]) -> int:
    """Tokens of the longest beginning of `path` that `known`, a tree of segments, has; it has all of it afterwards."""
    node = shared = 0
    is_known = True
    for content_id, tokens in path:
        step = node, content_id, tokens
        is_known = is_known and step in known
        shared += tokens if is_known else 0
        node = known.setdefault(step, len(known) + 1)
    return shared


def counted(run: RecordedRun) -> int | None:
    """Cached tokens that the engine counted while it was measured; None: not known."""
    metrics = [one for one in run.manifest.targets[0].metrics if one.meaning == "cached_prompt_tokens"]
    rows = run.server_metrics().to_pylist() if metrics else []
    if not metrics or any(row["reset"] for row in rows):
        return None
    start = _at(metrics[0], rows, "warmup_end")
    start = _at(metrics[0], rows, "before") if start is None else start
    end = _at(metrics[0], rows, "after")
    return None if start is None or end is None else round(end - start)


def _at(metric: MetricNames, rows: Sequence[Mapping[str, Any]], moment: str) -> float | None:
    """Over all replicas, each by its last scrape of the moment."""
    of_moment = [row for row in rows if row["moment"] == moment]
    last_ns = {row["replica"]: row["t_ns"] for row in sorted(of_moment, key=lambda row: row["t_ns"])}
    samples = [
        Sample(row["name"], row["family"], row["type"], dict(row["labels"]), row["value"])
        for row in of_moment
        if row["t_ns"] == last_ns[row["replica"]]
    ]
    known = [sample for sample in samples if sample.name not in ("up", "scrape_duration_seconds")]
    return value(Metric(**metric.model_dump()), known)


def side(sent: Sequence[Sent], by_counter: int | None) -> Side:
    """`by_counter`: cached tokens that the engine counted of all of them; None: not known."""
    again = [one for one in sent if one.is_again]
    shared = sum(one.shared_tokens for one in again)
    known = [one for one in again if one.cached_tokens is not None]
    if again and 2 * len(known) >= len(again):
        hits = sum(2 * (one.cached_tokens or 0) >= one.shared_tokens for one in known)
        cached = sum(one.cached_tokens or 0 for one in known)
        state: Counted = "hit" if 2 * hits >= len(known) else "some" if hits else "none"
        words = f"{hits} of {len(known)} requests that sent a prefix again hit it ({cached:,} tokens)"
        return Side(state, words, cached, shared)
    if not again or by_counter is None:
        reason = "no request sent a prefix again" if not again else "nobody counted hits"
        return Side("unknown", reason, None, shared)
    state = "hit" if 2 * by_counter >= shared else "none" if by_counter <= NEW_SHARE * shared else "some"
    words = f"by the engine's counter {by_counter:,} of {shared:,} tokens that were sent again were hit"
    return Side(state, words, by_counter, shared)


def ratio(a: Mapping[Place, Sent], b: Mapping[Place, Sent], again: bool) -> Interval | None:
    """Time to first token of the first run over the second, by the median of each session: requests that both sent."""
    of_sessions: dict[int, list[float]] = {}
    for place, one in a.items():
        other = b.get(place)
        if other is None or abs(one.prompt_tokens - other.prompt_tokens) > ALIKE * other.prompt_tokens:
            continue
        if (one.is_again and other.is_again) if again else (one.is_new and other.is_new):
            of_sessions.setdefault(place[0], []).append(one.ttft_ms / other.ttft_ms)
    return median_interval([statistics.median(ratios) for ratios in of_sessions.values()]) if of_sessions else None


def _usable(run: RecordedRun) -> None:
    manifest = run.manifest
    if len(manifest.targets) != 1:
        names = ", ".join(target.name for target in manifest.targets)
        raise InputError(f"The run {manifest.run_id} has {len(manifest.targets)} targets ({names}): name one of one.")
    if manifest.state == "running":
        raise InputError(f"The run {manifest.run_id} has not ended, or was killed: name another one.")
