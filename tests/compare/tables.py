"""Tables of requests with known differences: sessions of a few turns, of which each has its own length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from harness.compare.rows import Bools, Rows
from harness.statistics.bootstrap import Floats
from harness.statistics.moments import STRETCHES, stretches_of


def rows(ttft_ms: Floats, sessions: int, **changes: Any) -> Rows:
    """`ttft_ms`: of all requests, session by session; all else is the same for all of them."""
    number = len(ttft_ms)
    session = np.repeat(np.arange(sessions), number // sessions)
    turn = np.tile(np.arange(number // sessions), sessions)
    times: dict[str, Floats] = {
        "ttft_ms": ttft_ms, "tpot_ms": np.full(number, 10.0), "e2e_ms": ttft_ms + 500.0,
        "cached_tokens": np.where(turn == 0, 0.0, 800.0), "prompt_tokens": np.full(number, 1000.0),
    }  # fmt: skip
    times |= {name: changes.pop(name) for name in times.keys() & changes.keys()}
    yes = np.ones(number, dtype=bool)
    others: dict[str, Any] = {
        "session": session, "root": session, "turn": turn, "ok": yes, "counted": yes, "cold": turn == 0,
        "stretch": stretches_of(np.arange(number)), "stretches": STRETCHES, **hits_of(times),
    }  # fmt: skip
    return Rows(column=times.__getitem__, **others | changes)


def hits_of(times: dict[str, Floats]) -> dict[str, Bools]:
    cached, prompt = times["cached_tokens"], times["prompt_tokens"]
    return {"hit": 2 * cached >= prompt, "miss": 2 * cached < prompt}


def changed(given: Rows, **changes: Any) -> Rows:
    """With other columns, those among them that are read when needed."""
    names = ("ttft_ms", "tpot_ms", "e2e_ms", "cached_tokens", "prompt_tokens")
    times = {name: changes.pop(name, given.column(name)) for name in names}
    return replace(given, column=times.__getitem__, **hits_of(times) | changes)


def played(workload: int, chance: int, sessions: int, turns: int = 3, slower: float = 1.0) -> Rows:
    """A run: the lengths follow from the workload, and what else makes requests slow from chance.

    Chance has a part that a whole session shares, half of turns are hits, and TPOT and hits vary, too.
    """
    lengths, luck = np.random.default_rng(workload), np.random.default_rng(chance)
    number = sessions * turns
    session, turn = np.repeat(np.arange(sessions), turns), np.tile(np.arange(turns), sessions)
    length = np.floor(500 * np.exp(lengths.normal(0, 0.5, sessions)))[session] * (1 + turn)
    cached = np.where((turn > 0) & (luck.random(number) < 0.9), np.floor(0.7 * length), 0.0)
    noise = luck.normal(0, 0.2, sessions)[session] + luck.normal(0, 0.2, number)
    ttft_ms = slower * (20 + 0.1 * (length - cached)) * np.exp(noise)
    tpot_ms = 10 * np.exp(luck.normal(0, 0.1, number))
    e2e_ms = ttft_ms + 50 * tpot_ms
    return rows(ttft_ms, sessions, tpot_ms=tpot_ms, e2e_ms=e2e_ms, cached_tokens=cached, prompt_tokens=length)


def started_at_once(run: Rows, chance: int, users: int, varies: float = 0.05) -> Rows:
    """The run as `users` play it, one session after the other, each a turn a second: the first turn of each of them
    waits in one queue, for a time that is theirs together and is another one in each run."""
    luck = np.random.default_rng([chance, 1])
    herd = (run.session < users) & (run.turn == 0)
    waited_ms = 600 * np.exp(luck.normal(0, varies)) * (1 + luck.normal(0, 0.003, len(run)))
    alone_ms = run.column("ttft_ms")
    ttft_ms = np.where(herd, waited_ms, alone_ms)
    turns = int(run.turn.max()) + 1
    due_ns = ((run.session // users) * turns + run.turn) * 1_000_000_000 + run.session * 1_000
    e2e_ms = run.column("e2e_ms") + ttft_ms - alone_ms
    return changed(run, ttft_ms=ttft_ms, e2e_ms=e2e_ms, stretch=stretches_of(due_ns))
