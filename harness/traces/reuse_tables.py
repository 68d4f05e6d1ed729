"""Reuse of a trace, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cache.reuse_distance import ERRORS_STATED
from harness.traces.reuse import AtCapacity, Reuse

MOST = "0.9"
"""The share of what can be served whose capacity stands among the facts."""
_LONG_S = 120
"""Times of shorter traces are shown with a decimal."""
RULES = (
    "Hits count full blocks of {block:,} tokens; the last token of a prompt is always computed. Requests are taken in "
    "order, each finished before the next; the least recently used block goes first. Answers are not kept."
)


def render(reuse: Reuse, console: Console) -> None:
    """Print everything in 80 columns."""
    sections = {f"{reuse.trace}: {reuse.format}": _facts(reuse)}
    if reuse.capacities:
        sections["Token hit rate of an LRU cache, by its capacity"] = _capacities(reuse)
        sections["Reuse distance: capacity for a share of what can be served"] = _distances(reuse)
    sections["Working set over time, in distinct tokens"] = _windows(reuse)
    for title, table in sections.items():
        # Text, not markup: names and lines of a file may hold square brackets.
        console.print(Text(title, style="bold"))
        console.print(table)
        console.print()
    for sentence in _sentences(reuse):
        console.print(Text(sentence))


def _facts(reuse: Reuse) -> Table:
    table = Table(show_header=False)
    table.add_column()
    table.add_column()
    for name, text in _fact_rows(reuse):
        table.add_row(Text(name), Text(text))
    return table


def _fact_rows(reuse: Reuse) -> Iterator[tuple[str, str]]:
    span = "; the trace has no times"
    if reuse.span_s is not None:
        rate = f", {reuse.requests / reuse.span_s:,.2f} a second" if reuse.span_s else ""
        span = f" over {reuse.span_s:,.0f} s{rate}"
    yield "requests", f"{reuse.requests:,}{span}"
    lengths = f"median {reuse.median_prompt_tokens:,.0f}, longest {reuse.longest_prompt_tokens:,} a request"
    yield "prompt tokens", f"{reuse.prompt_tokens:,}; {lengths}"
    yield "output tokens", "not known" if reuse.output_tokens is None else f"{reuse.output_tokens:,}"
    yield "block", f"{reuse.block_tokens:,} tokens"
    if reuse.sampled_share < 1:
        yield "sampled", f"{reuse.sampled_share:.2%} of the distinct blocks; figures of blocks are estimates"
    yield "can be served", f"{_percent(reuse.infinite.hit_rate)} of the prompt tokens: an earlier request had them"
    new = reuse.infinite.capacity_tokens
    yield "new", f"{_percent(new / reuse.prompt_tokens)}: {new:,} distinct tokens"
    yield "never cached", f"{_percent(reuse.uncached_tokens / reuse.prompt_tokens)}: what is left after the full blocks"
    most = reuse.capacity_serving[MOST]
    if most is not None:
        yield "capacity", f"{most:,} tokens serve {float(MOST):.0%} of what can be served"
        yield "peak working set", f"{reuse.peak_reusable_tokens:,} tokens seen and needed later at one time"


def _capacities(reuse: Reuse) -> Table:
    table = Table()
    for heading in ("capacity (tokens)", "blocks", "hit rate", "of what can be served"):
        table.add_column(heading, justify="right")
    is_sampled = reuse.sampled_share < 1
    if is_sampled:
        table.add_column("true value within")
    for name, at in [*((f"{at.capacity_tokens:,}", at) for at in reuse.capacities), ("infinite", reuse.infinite)]:
        blocks = f"{at.capacity_tokens // reuse.block_tokens:,}" if at is not reuse.infinite else ""
        within = [f"{at.low:.4f} to {at.high:.4f}"] if is_sampled else []
        table.add_row(name, blocks, f"{at.hit_rate:.4f}", _of_possible(at), *within)
    return table


def _of_possible(at: AtCapacity) -> str:
    return "-" if at.of_possible is None else _percent(at.of_possible)


def _distances(reuse: Reuse) -> Table:
    table = Table()
    for share in reuse.capacity_serving:
        table.add_column(f"{float(share):.0%}", justify="right")
    table.add_row(*("-" if tokens is None else _short(tokens) for tokens in reuse.capacity_serving.values()))
    return table


def _windows(reuse: Reuse) -> Table:
    has_times = reuse.span_s is not None and reuse.windows[0].start_s is not None
    table = Table()
    for heading in ("from (s)" if has_times else "window", "requests", "prompt tokens", "in use", "of later use"):
        table.add_column(heading, justify="right")
    decimals = 0 if (reuse.span_s or 0) >= _LONG_S else 1
    for number, window in enumerate(reuse.windows, start=1):
        table.add_row(
            f"{number}" if window.start_s is None else f"{window.start_s:,.{decimals}f}",
            f"{window.requests:,}",
            _short(window.prompt_tokens),
            _short(window.distinct_tokens),
            _short(window.reusable_tokens),
        )
    return table


def _sentences(reuse: Reuse) -> Iterator[str]:
    if reuse.skipped:
        left_out = "1 entry was" if reuse.skipped == 1 else f"{reuse.skipped:,} entries were"
        yield f"Problem: {left_out} left out; the first: {reuse.first_skipped}"
    if reuse.infinite.of_possible is None:
        yield "Nothing can be served: no prompt begins with a full block that an earlier one had."
    yield from reuse.notes
    if reuse.sampled_share < 1:
        yield f"The bounds of a hit rate lie {ERRORS_STATED:g} standard errors away from it."
    yield "In use: blocks that a window's requests have. Of later use: blocks seen by its end that come again later."
    yield RULES.format(block=reuse.block_tokens)


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _short(tokens: int) -> str:
    """Three digits, in thousands or millions where it has more than four."""
    for unit, name in ((10**6, " M"), (10**3, " k")):
        if tokens >= 10 * unit:
            value = tokens / unit
            return f"{value:,.0f}{name}" if value >= 100 else f"{value:.1f}{name}"
    return f"{tokens:,}"
