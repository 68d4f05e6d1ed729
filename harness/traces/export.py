"""A recorded run as a trace: what was really sent, when, and what its prompts have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from harness.cache.prompt import items
from harness.errors import InputError
from harness.record.manifest import TargetRecord
from harness.record.reader import RecordedRun
from harness.traces.mooncake import write_mooncake
from harness.traces.request import TraceRequest

_NS_PER_S = 1_000_000_000
_COLUMNS = ("session", "t_send", "output_tokens", "planned_output_tokens", "path", "path_tokens")


@dataclass(frozen=True, slots=True)
class WrittenTrace:
    """One file that was written."""

    path: Path
    target: str
    requests: int


def export_run(run: RecordedRun, out: Path, block_tokens: int, target: str | None = None) -> list[WrittenTrace]:
    """Write the measured requests to each target, or to the one that is named, as a Mooncake trace.

    A single one is written to `out`; of several, each to `out` with the target's name before the suffix. Raises
    InputError if there is no such target, if nothing was sent to one, or if a file cannot be written.
    """
    names = [record.name for record in run.manifest.targets]
    if target is not None and target not in names:
        raise InputError(f"The run {run.manifest.run_id} has no target {target}; it has {', '.join(names)}.")
    table = run.requests()
    written = []
    for record in run.manifest.targets:
        if target in (None, record.name):
            requests = traced_requests(table, record)
            if not requests:
                raise InputError(f"The run {run.manifest.run_id} has no measured request to {record.name}.")
            path = out if target or len(names) == 1 else _own_path(out, record.name)
            try:
                write_mooncake(path, requests, block_tokens)
            except OSError as problem:
                raise InputError(f"{path}: cannot be written: {problem.strerror}") from None
            written.append(WrittenTrace(path, record.name, len(requests)))
    return written


def traced_requests(table: pa.Table, target: TargetRecord) -> list[TraceRequest]:
    """The requests of the measured phase that were sent to `target`, in the order of their sends.

    `table` has the columns of `harness.record.schema.REQUESTS`. Times count from the first send. A prompt is its path,
    template included. An answer whose length nobody counted is as long as was asked for.
    """
    of_target = pc.and_(pc.equal(table["target"], target.name), pc.equal(table["phase"], "measure"))
    sent = table.filter(pc.and_(of_target, pc.is_valid(table["t_send"]))).select(_COLUMNS).sort_by("t_send").to_pylist()
    words = target.lexicon.get("words")
    return [
        TraceRequest(
            time_s=(row["t_send"] - sent[0]["t_send"]) / _NS_PER_S,
            prompt=items(row["path"], row["path_tokens"], words),
            output_tokens=row["output_tokens"] or row["planned_output_tokens"],
            session=None if row["session"] is None else str(row["session"]),
        )
        for row in sent
    ]


def _own_path(out: Path, target: str) -> Path:
    """`day.jsonl` becomes `day-here.jsonl`; what no file's name can hold is written as in a URL."""
    return out.with_stem(f"{out.stem}-{quote(target, safe=':')}")
