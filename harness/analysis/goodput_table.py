"""A search for the highest rate that meets an objective, as a table and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich import box
from rich.table import Table

from harness.analysis.goodput import Goodput
from harness.analysis.numbers import UNKNOWN, count, percent
from harness.analysis.tables import Footnotes
from harness.slo.judgement import Count
from harness.slo.search import Answer

GOOD = (
    "rate: sessions that arrive a second; n: requests that are known to meet every limit or not; good/s: those that "
    "do, a second (goodput), and their share."
)
BEYOND = (
    "Below each limit: the share of the requests that are beyond it and between what bounds it lies, and how many "
    "independent requests those that were counted are worth, as requests of one session or one moment depend on each "
    "other. Failed and refused requests are beyond every limit."
)

DISTURBED = 0.1
"""Above this share of the requests it is said that the harness was the bottleneck."""


def goodput_table(answer: Answer, found: Mapping[float, Goodput], notes: Footnotes) -> Table:
    """A line for each rate, in ascending order, by its last look."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("rate", "seconds", "n", "good/s", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    probes = sorted(answer.probes, key=lambda probe: probe.rate)
    for limit in probes[0].counts:
        table.add_column(limit.limit.text, justify="right")
    table.add_column("refused", justify="right")
    table.add_column("objective", no_wrap=True)
    for probe in probes:
        one = found[probe.rate]
        table.add_row(
            f"{probe.rate:g}",
            f"{probe.length_s:.0f}",
            count(one.requests),
            UNKNOWN if one.per_s is None else f"{one.per_s:.2f}",
            percent(one.share),
            *(_beyond(each, answer.plan.error) for each in probe.counts),
            count(one.refused),
            probe.verdict,
        )
    notes.need(GOOD)
    notes.need(BEYOND)
    return table


def _beyond(limit: Count, error: float) -> str:
    if not limit.of:
        return UNKNOWN
    low, high = limit.share(error)
    return f"{limit.beyond / limit.of:.2%} ({low:.2%} to {high:.2%}, worth {limit.worth})"


def sentences(answer: Answer, found: Mapping[float, Goodput]) -> Iterator[str]:
    """The answer, and how sure it is. `found`: by the last look at each rate."""
    best = None if answer.met is None else found[answer.met]
    plan, slo = answer.plan, ", ".join(limit.limit.text for limit in answer.probes[0].counts)
    if answer.met is None or best is None:
        yield f"No rate from {plan.lowest:g} to {plan.highest:g} sessions/s was shown to meet {slo}."
    else:
        yield f"Up to {answer.met:g} sessions/s meet {slo}."
        if best.per_s is not None and best.share is not None:
            yield f"Goodput at that rate: {best.per_s:.2f} requests/s meet every limit, {percent(best.share)} of all."
    if answer.not_met is not None:
        yield f"{answer.not_met:g} sessions/s do not meet it."
    elif answer.met == plan.highest:
        yield "That is the highest rate that was tried: a higher one may do so, too; raise --rate-to."
    open_rates = [rate for rate in answer.undecided if rate > (answer.met or 0)]
    if open_rates:
        rates = ", ".join(f"{rate:g}" for rate in open_rates)
        yield f"Not decided, as too few requests say too little: {rates} sessions/s; a longer --run-time may decide."
    for rate in sorted(rate for rate in found if rate > (answer.met or 0)):
        disturbed, requests = found[rate].disturbed, found[rate].requests
        if disturbed > DISTURBED * requests:
            share = f"{disturbed / requests:.0%} of the requests"
            yield (
                f"At {rate:g} sessions/s the harness was the bottleneck for {share}: that they were late may be its "
                "fault; give it more workers, or a machine of its own."
            )
    yield (
        f"With {plan.confidence:.0%} confidence nothing of this is wrong: each of the looks at a rate, at most "
        f"{plan.most_probes * plan.looks}, is wrong with a chance of at most {plan.error:.2g}, if sessions do not "
        "depend on each other and the objective is met at a rate wherever it is at a higher one."
    )
