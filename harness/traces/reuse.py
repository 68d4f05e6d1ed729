"""What the requests of a trace could reuse: everything that `kvswarm trace reuse` tells."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from harness.cache.block_references import BlockReferences, block_references
from harness.cache.reuse_distance import ReuseDistances, distances_of
from harness.cache.working_set import WorkingSet, working_set
from harness.errors import InputError
from harness.traces.request import Trace, TraceRequest

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
"""Of what can be served: for these the capacity that serves so much is told, the quantiles of the reuse distance."""
WINDOWS = 12
"""At most, and no more than requests; of equal duration, or of equally many requests where there are no times."""


@dataclass(frozen=True, slots=True)
class AtCapacity:
    """What one LRU cache serves."""

    capacity_tokens: int
    hit_rate: float
    """Hit tokens / prompt tokens."""
    of_possible: float | None
    """Hit tokens / those of an infinite cache; None if that has none."""
    low: float
    high: float
    """Between which the true hit rate lies if blocks were sampled; both equal to it if not."""


@dataclass(frozen=True, slots=True)
class Window:
    """Some requests in a row."""

    start_s: float | None
    """None: the trace has no times."""
    requests: int
    prompt_tokens: int
    distinct_tokens: int
    """Of the blocks that these requests refer to, each counted once."""
    reusable_tokens: int
    """At the end of the window: of the blocks seen so far, those that a later request asks for again."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """Figures of one trace at one block size. Tokens of blocks are those of full blocks."""

    trace: str
    format: str
    block_tokens: int
    sampled_share: float
    """Share of the distinct blocks that was looked at; if below 1, figures of blocks are estimates."""
    requests: int
    skipped: int
    first_skipped: str | None
    span_s: float | None
    """From the first request to the last; None: the trace has no times."""
    prompt_tokens: int
    median_prompt_tokens: float
    longest_prompt_tokens: int
    output_tokens: int | None
    """None: not known of all requests."""
    infinite: AtCapacity
    """A cache that never evicts; its capacity is what it holds in the end, the distinct tokens of the trace."""
    peak_reusable_tokens: int
    """The largest of all moments: what a cache needs that knows the future."""
    capacities: Sequence[AtCapacity]
    capacity_serving: dict[str, int | None]
    """Share of what can be served -> smallest capacity in tokens that serves it; None if nothing can be."""
    windows: Sequence[Window]
    notes: Sequence[str]

    @property
    def uncached_tokens(self) -> int:
        """Prompt tokens that are neither served by an infinite cache nor new blocks in it: mostly in no full block."""
        served = round(self.infinite.hit_rate * self.prompt_tokens)
        return max(0, self.prompt_tokens - served - self.infinite.capacity_tokens)


def reuse_of(
    trace: Trace,
    block_tokens: int | None = None,
    capacities_tokens: Sequence[int] = (),
    sampled_share: float = 1.0,
) -> tuple[Reuse, ReuseDistances]:
    """Figures, and the whole curve that the hit rates are read off.

    `block_tokens`: a multiple of the trace's own, which is the default. `capacities_tokens`: default a ladder of 1, 2
    and 5 times the powers of ten. Raises InputError for a block that the trace cannot tell the sharing of.
    """
    requests = trace.requests
    if not 0 < sampled_share <= 1:
        raise InputError(f"--sample is a share above 0, and 1 at most; found {sampled_share:g}")
    block = _block(trace, block_tokens)
    references = block_references((request.prompt for request in requests), block, sampled_share)
    if sampled_share < 1 and not len(references.hashes):
        raise InputError(f"--sample {sampled_share:g} leaves no block of {trace.name} to look at; give a larger share")
    distances = distances_of(references)
    used = working_set(references)
    to_tokens = block / references.sampled_share
    served = {str(share): distances.capacity_serving(share) for share in SHARES}
    outputs = [request.output_tokens for request in requests]
    times = _times(requests)
    reuse = Reuse(
        trace=trace.name,
        format=trace.format,
        block_tokens=block,
        sampled_share=references.sampled_share,
        requests=len(requests),
        skipped=trace.skipped.entries,
        first_skipped=trace.skipped.first,
        span_s=times[-1] - times[0] if times else None,
        prompt_tokens=distances.prompt_tokens,
        median_prompt_tokens=float(np.median(references.prompt_tokens)),
        longest_prompt_tokens=int(references.prompt_tokens.max()),
        output_tokens=sum(tokens for tokens in outputs if tokens is not None) if None not in outputs else None,
        infinite=_at(distances, math.inf, round(len(used.first) * to_tokens)),
        peak_reusable_tokens=round(int(used.reusable().max()) * to_tokens),
        capacities=[_at(distances, one, one) for one in capacities_tokens or ladder(block, served["1.0"])],
        capacity_serving=served,
        windows=list(_windows(references, used, times, to_tokens)),
        notes=trace.notes,
    )
    return reuse, distances


def as_json(reuse: Reuse) -> str:
    """The fields of `Reuse` as JSON text; null is "not known"."""
    return json.dumps(asdict(reuse), indent=2, allow_nan=False)


def capacities(text: str) -> list[int]:
    """The numbers of tokens in `text`, between commas; none if it is empty. Raises InputError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if not part.isascii() or not part.isdigit() or int(part) < 1:
            raise InputError(
                f'--capacity-tokens: "{part}" is no number of tokens; give whole numbers, such as 500000,1000000'
            )
    return [int(part) for part in parts]


def ladder(block_tokens: int, largest_tokens: int | None) -> list[int]:
    """1, 2 and 5 times powers of ten, over two decades or three, up to the first that is `largest_tokens` or more.

    None smaller than a block; none at all if there is no largest.
    """
    if largest_tokens is None:
        return []
    digits = len(str(largest_tokens))
    steps = [factor * 10**power for power in range(max(0, digits - 3), digits + 1) for factor in (1, 2, 5)]
    enough = next(step for step in steps if step >= largest_tokens)
    return [step for step in steps if block_tokens <= step <= enough]


def _block(trace: Trace, wanted_tokens: int | None) -> int:
    own = trace.block_tokens
    if wanted_tokens is None:
        return own
    if wanted_tokens % own:
        raise InputError(
            f"{trace.name} tells what is shared in blocks of {own} tokens, so nothing is known of blocks of "
            f"{wanted_tokens}; give a multiple of {own}"
        )
    return wanted_tokens


def _at(distances: ReuseDistances, capacity_tokens: float, shown_tokens: int) -> AtCapacity:
    possible = distances.hit_tokens()
    of_possible = distances.hit_tokens(capacity_tokens) / possible if possible else None
    low, high = distances.bounds(capacity_tokens)
    return AtCapacity(shown_tokens, distances.hit_rate(capacity_tokens), of_possible, low, high)


def _times(requests: Sequence[TraceRequest]) -> list[float]:
    """Empty if they are not known."""
    return [request.time_s for request in requests if request.time_s is not None]


def _windows(
    references: BlockReferences, used: WorkingSet, times: Sequence[float], to_tokens: float
) -> Iterator[Window]:
    count = used.request_count
    most = min(WINDOWS, count)
    if times and times[-1] > times[0]:
        starts_s = np.linspace(times[0], times[-1], most + 1)[:-1]
        starts = [int(np.searchsorted(times, start_s)) for start_s in starts_s]
    else:
        starts = [count * part // most for part in range(most)]
        starts_s = None
    reusable = used.reusable()
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], count], strict=True)):
        yield Window(
            None if starts_s is None else float(starts_s[number]),
            end - start,
            int(references.prompt_tokens[start:end].sum()),
            round(used.distinct(start, end) * to_tokens),
            round(int(reusable[end - 1]) * to_tokens) if end else 0,
        )
