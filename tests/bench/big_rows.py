"""The requests of one worker of a big run, column by column, in parts as a worker writes them.

Sessions of a chat: one system prompt for all, and in each turn one more message; answers are scripted. The engine keeps
whole blocks of 16 tokens and forgets nothing. All of it follows from the seed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from harness.record.schema import REQUESTS
from harness.record.writer import ROW_GROUP_ROWS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

RUN_ID, TARGET, SCENARIO = "big", "simulated", "big-chat"
START_NS = 1_700_000_000 * 10**9
"""When the measured phase began."""
FLUSH_S = 15
"""Seconds in a part, as a worker flushes its rows."""
TURNS = 5
BLOCK = 16
SYSTEM_TOKENS = 400
MESSAGE_TOKENS = 120
"""Of a user's message and of an answer as it is sent back, at most."""
SYSTEM_ID = 7
MOST_CHUNKS = 16
STATUSES = ("ok", "timeout", "http_error", "stream_error", "cancelled", "refused")
SHARES = (0.985, 0.004, 0.003, 0.003, 0.003, 0.002)
SILENT = 0.01
"""Share of the answers that do not tell their cached tokens."""


@dataclass(slots=True)
class Truth:
    """What the rows of some workers add up to; arrays have the shape (seconds + 1,), by when it happened."""

    requests: int
    by_status: Ints
    """Shape (statuses,)."""
    reporting: int
    prompt_tokens: int
    cached_tokens: int
    """Over those that report both."""
    ttft_ms_sum: float
    """Of the successful ones."""
    counted_prompt: Ints
    counted_cached: Ints
    generated: Ints
    begun: Ints
    ended: Ints

    def __add__(self, other: Truth) -> Truth:
        return Truth(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(Truth)})


def write_worker(
    folder: Path, worker: int, requests: int, seconds: int, seed: int
) -> tuple[list[tuple[str, int]], Truth]:
    """(name and rows of each part, what they add up to)."""
    rng = np.random.default_rng([seed, worker])
    sessions = -(-requests // TURNS)
    start_s = rng.uniform(0, 0.85 * seconds, (sessions, 1))
    think_s = rng.uniform(0.2, 1.8, (sessions, TURNS)) * min(5, seconds / 50)
    think_s[:, 0] = 0
    due_s = (start_s + think_s.cumsum(axis=1)).ravel()[:requests]
    lengths = rng.integers(20, MESSAGE_TOKENS + 1, (sessions, 2 * TURNS), dtype=np.int32)
    order = np.argsort(due_s, kind="stable")
    borders = np.searchsorted(due_s[order], np.arange(0, seconds + FLUSH_S, FLUSH_S))
    parts, truths = [], []
    for number, (low, high) in enumerate(pairwise(borders.tolist())):
        which = order[low:high]
        if len(which):
            name = f"requests/part-{worker:04d}-{number:05d}.parquet"
            table, truth = _part(which, due_s[which], lengths, worker, sessions, seconds, rng)
            _write(table, folder / name)
            parts.append((name, len(which)))
            truths.append(truth)
    return parts, sum(truths[1:], truths[0])


def _write(table: pa.Table, path: Path) -> None:
    by_time = pq.SortingColumn.from_ordering(table.schema, [("t_due", "ascending")])
    pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP_ROWS, sorting_columns=by_time)


def _part(
    which: Ints, due_s: Floats, lengths: npt.NDArray[np.int32], worker: int, sessions: int, seconds: int, rng: Any
) -> tuple[pa.Table, Truth]:
    """`which`: numbers of the requests within the worker, in the order in which they are due."""
    n = len(which)
    session, turn = which // TURNS, which % TURNS
    status = rng.choice(len(STATUSES), n, p=SHARES)
    ok, refused, answered = status == 0, status == 5, np.isin(status, (0, 3))
    before = np.concatenate([np.zeros((n, 1), np.int64), lengths[session].cumsum(axis=1)], axis=1)
    prompt = SYSTEM_TOKENS + before[np.arange(n), 2 * turn + 1]
    shared = np.where(turn > 0, SYSTEM_TOKENS + before[np.arange(n), np.maximum(2 * turn - 1, 0)], SYSTEM_TOKENS)
    cached = np.minimum(shared, prompt - 1) // BLOCK * BLOCK
    output = rng.integers(2, 64, n)
    reports = answered & (rng.random(n) >= SILENT)
    # In ns from here on: durations follow from stamps, as they do in real rows.
    due = START_NS + (due_s * 1e9).astype(np.int64)
    send = due + rng.exponential(2e5, n).astype(np.int64)
    first = send + (rng.lognormal(3.0, 0.5, n) * 1e6 + (prompt - cached) * 5e4).astype(np.int64)
    gaps = rng.gamma(4.0, 2.5, (n, MOST_CHUNKS)).astype(np.float32)
    chunks = np.minimum(output, MOST_CHUNKS + 1)
    kept = np.arange(MOST_CHUNKS) < (chunks - 1)[:, None]
    last = first + ((gaps * kept).sum(axis=1, dtype=np.float64) * 1e6).astype(np.int64)
    end = last + 20_000
    itl = pa.ListArray.from_arrays(_offsets(np.where(answered, chunks - 1, 0)), gaps[kept & answered[:, None]])
    path, path_tokens, path_levels = _paths(session, turn, lengths, worker, sessions)
    known = {
        "run_id": _same(RUN_ID, n), "target": _same(TARGET, n), "engine": _same("vllm", n), "model": _same("m", n),
        "scenario": _same(SCENARIO, n), "kind": _same("multi-round", n), "phase": _same("measure", n),
        "worker": np.full(n, worker), "user": pa.array(session % 997, mask=refused),
        "session": worker * sessions + session, "turn": turn, "warmth": _named(np.minimum(turn, 1), ("cold", "warm")),
        "request_id": _ids(worker, which), "t_due": due,
        "t_send": pa.array(send, mask=refused), "t_first": pa.array(first, mask=~answered),
        "t_last": pa.array(last, mask=~answered), "t_end": pa.array(end, mask=~answered),
        "blocked_ms": pa.array(np.zeros(n), mask=refused), "late_ms": pa.array((send - due) / 1e6, mask=refused),
        "lag_ms": pa.array((send - due) / 1e6, mask=refused),
        "ttft_ms": pa.array((first - send) / 1e6, mask=~answered),
        "ttft_due_ms": pa.array((first - due) / 1e6, mask=~answered),
        "tpot_ms": pa.array((last - first) / 1e6 / (output - 1), mask=~ok),
        "itl_ms": itl, "e2e_ms": pa.array((end - send) / 1e6, mask=~answered),
        "clock": pa.array(np.full(n, "kernel", object), mask=refused),
        "stamp_error_ms": pa.array(rng.exponential(0.01, n), mask=~answered),
        "last_stamp_error_ms": pa.array(rng.exponential(0.01, n), mask=~answered),
        "coalesced": np.where(answered, rng.integers(0, 2, n), 0),
        "clock_stepped": pa.array(refused & False, mask=refused),
        "planned_prompt_tokens": prompt, "planned_output_tokens": output,
        "prompt_tokens": pa.array(prompt, mask=~answered), "prompt_tokens_source": _where(answered, "usage"),
        "output_tokens": pa.array(output, mask=~ok), "output_tokens_source": _where(ok, "usage"),
        "first_tokens": pa.array(np.ones(n), mask=~answered), "cached_tokens": pa.array(cached, mask=~reports),
        "cached_tokens_source": _where(reports, "usage"),
        "path": path, "path_tokens": path_tokens, "path_levels": path_levels,
        "status": _named(status, STATUSES), "error": _where(~ok, "by the generator"),
        "http_status": pa.array(np.where(status == 2, 503, 200), mask=np.isin(status, (1, 4, 5))),
        "finish_reason": _where(ok, "length"), "chunks": np.where(answered, chunks, 0),
        "bytes": np.where(answered, chunks * 250, 0),
    }  # fmt: skip
    columns = [_column(known.get(field.name), field, n) for field in REQUESTS]
    both = reports
    truth = Truth(
        requests=n,
        by_status=np.bincount(status, minlength=len(STATUSES)),
        reporting=int(both.sum()),
        prompt_tokens=int(prompt[both].sum()),
        cached_tokens=int(cached[both].sum()),
        ttft_ms_sum=float((first - send)[ok].sum() / 1e6),
        counted_prompt=_by_second(first, prompt * answered, seconds),
        counted_cached=_by_second(first, cached * answered, seconds),
        generated=_by_second(first, output * ok, seconds),
        begun=_by_second(send, ~refused, seconds),
        ended=_by_second(np.where(answered, end, send), ~refused, seconds),
    )
    return pa.Table.from_arrays(columns, schema=REQUESTS), truth


def _paths(
    session: Ints, turn: Ints, lengths: npt.NDArray[np.int32], worker: int, sessions: int
) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The system prompt, then user and answer in turn, up to the user's message of this turn."""
    n, width = len(session), 2 * TURNS + 1
    ids = np.empty((n, width), np.int64)
    ids[:, 0] = SYSTEM_ID
    ids[:, 1:] = 1_000_000 + (worker * sessions + session)[:, None] * 2 * TURNS + np.arange(2 * TURNS)
    tokens = np.concatenate([np.full((n, 1), SYSTEM_TOKENS, np.int32), lengths[session]], axis=1)
    kept = np.arange(width) <= (2 * turn + 1)[:, None]
    levels = pa.DictionaryArray.from_arrays(np.tile(_LEVELS, (n, 1))[kept], pa.array(["system", "user", "reply"]))
    offsets = _offsets(2 * turn + 2)
    return tuple(
        pa.ListArray.from_arrays(offsets, some) for some in (ids[kept], tokens[kept], levels.cast(pa.string()))
    )


_LEVELS = np.array([0, *[1, 2] * TURNS], np.int8)


def _offsets(counts: Ints) -> npt.NDArray[np.int32]:
    return np.concatenate([[0], counts.cumsum()]).astype(np.int32)


def _by_second(stamps: Ints, values: npt.NDArray[Any], seconds: int) -> Ints:
    """What happened after the last whole second counts for the last scrape."""
    at = np.minimum((stamps - START_NS) // 10**9 + 1, seconds)
    return np.bincount(at, values, seconds + 1).astype(np.int64)


def _same(text: str, n: int) -> pa.Array:
    return pa.repeat(text, n)


def _named(numbers: npt.NDArray[Any], names: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(numbers.astype(np.int8), pa.array(names)).cast(pa.string())


def _where(which: npt.NDArray[np.bool_], text: str) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(which), np.int8), mask=~which), pa.array([text]))


def _ids(worker: int, which: Ints) -> pa.Array:
    return pa.compute.binary_join_element_wise(f"{worker:04d}", pa.array(which).cast(pa.string()), "-")


def _column(values: Any, field: pa.Field, n: int) -> pa.Array:
    if values is None:
        return pa.nulls(n, field.type)
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return array.cast(field.type)
