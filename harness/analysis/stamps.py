"""How far the recorded times of a target can be trusted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.health import Bools
from harness.analysis.latency import Percentiles, percentiles_with
from harness.analysis.run import TargetRun

_ARRIVALS = (
    "chunks", "coalesced", "clock", "clock_stepped", "t_first", "stamp_error_ms", "late_ms", "output_tokens_source",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stamps:
    """How far the recorded times can be trusted."""

    by_clock: dict[str, int]
    """Number of requests with output for each clock."""
    error_ms: Percentiles
    """Of `stamp_error_ms`; n is 0 without kernel stamps."""
    coalesced_share: float | None
    """Output chunks that came in one read with an earlier one / all output chunks; None: no chunks."""
    clock_steps: int
    """Requests during which the clock was set."""
    late_ms: Percentiles
    """Of `late_ms`, the delay that is the harness's own."""


def stamps_of(run: TargetRun) -> tuple[Stamps, int]:
    """Of the requests whose times count; and how many of them have output tokens that nobody counted."""
    clocks: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    chunks = coalesced = clock_steps = start = 0
    n = int(run.is_counted.sum())
    error_ms, late_ms, done = np.empty(n), np.empty(n), 0
    for piece in run.rows.pieces(*_ARRIVALS):
        which = run.is_counted[start : start + len(piece)]
        start += len(piece)
        clocks += _texts(piece["clock"], which & piece["t_first"].notna().to_numpy())
        sources += _texts(piece["output_tokens_source"], which)
        chunks += int(piece["chunks"].to_numpy(dtype=np.int64)[which].sum())
        coalesced += int(piece["coalesced"].to_numpy(dtype=np.int64)[which].sum())
        clock_steps += int(piece["clock_stepped"].to_numpy(dtype=bool, na_value=False)[which].sum())
        here = slice(done, done + int(which.sum()))
        done = here.stop
        error_ms[here], late_ms[here] = piece["stamp_error_ms"].to_numpy()[which], piece["late_ms"].to_numpy()[which]
    stamps = Stamps(
        by_clock=dict(sorted(clocks.items())),
        error_ms=percentiles_with(error_ms, [0], in_place=True)[0],
        coalesced_share=coalesced / chunks if chunks else None,
        clock_steps=clock_steps,
        late_ms=percentiles_with(late_ms, [0], in_place=True)[0],
    )
    return stamps, sources["events"]


def _texts(column: pd.Series, which: Bools) -> Counter[str]:
    """How often each category is among some of the rows."""
    names = column.cat.categories
    counts = np.bincount(column.cat.codes.to_numpy()[which] + 1, minlength=len(names) + 1)[1:]  # the first: null
    return Counter({str(name): int(n) for name, n in zip(names, counts, strict=True) if n})
