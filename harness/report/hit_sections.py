"""What was hit: the waterfall, the hit rate over time, and by reuse distance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis.level_table import level_table
from harness.analysis.numbers import count, percent, tokens
from harness.analysis.tables import Footnotes
from harness.analysis.waterfall_table import waterfall_lines, waterfall_table
from harness.analysis.working_set_table import working_set_table
from harness.report.findings import Findings
from harness.report.markup import folded, rich_table, term
from harness.report.plot import Plot
from harness.report.plots.distances import distance_plots
from harness.report.plots.hits import hits_plot, working_set_plot
from harness.report.plots.waterfall import waterfall_plot
from harness.report.section import Columns, Section, each, headings, sentences, side_table
from harness.report.side import Reported


def waterfall(reported: Reported, found: Sequence[Findings], notes: Footnotes) -> Section:
    after = []
    if (table := waterfall_table(reported.tables, notes)) is not None:
        after.append(folded("In tokens", rich_table(table)))
    after.append(sentences(found, lambda one: waterfall_lines(one.side.summary.waterfall)))
    if (levels := level_table(reported.tables, notes)) is not None:
        after.append(folded("By level of the prompts, in tokens", rich_table(levels)))
    lead = (
        f"From what requests {term('shareable', 'shared')} to what the engine {term('hit-rate', 'reported')}: each "
        f"step is lost of the one above it. {term('expected', 'Expected')} is by a model of the engine's cache."
    )
    columns = each(found, lambda one: [waterfall_plot(one.name("waterfall"), one.side.summary.waterfall)])
    return Section("waterfall", "Where the hit rate went", lead, columns, headings(found), after)


def over_time(reported: Reported, found: Sequence[Findings], notes: Footnotes) -> Section:
    def plots(one: Findings) -> list[Plot]:
        if (times := one.over_time) is None:
            return []
        rates = hits_plot(
            one.name("hit-rate"), times.end_s, times.by_requests, times.by_counters, one.expected, one.measured
        )
        return [rates, working_set_plot(one.name("working-set"), times.end_s, one.side.summary)]

    def achieved(one: Findings) -> Iterator[str]:
        yield from one.side.summary.achieved.sentences()
        if one.side.summary.arrived:
            yield one.side.summary.arrived.sentence()

    after = [sentences(found, achieved)]
    if (table := working_set_table(reported.tables, notes)) is not None:
        after.insert(0, folded("By tenths of the time, in tokens", rich_table(table)))
    lead = (
        f"The {term('hit-rate', 'hit rate')} that answers report beside the {term('expected', 'expected')} one, both "
        f"by tenths of the time, and every few seconds beside the one by the {term('counters', 'counters')}. Below, "
        f"the {term('working-set', 'working set')} against the KV capacity."
    )
    return Section("hits", "Hit rate over time", lead, each(found, plots), headings(found), after)


def distances(found: Sequence[Findings]) -> Section:
    def plots(one: Findings) -> list[Plot]:
        summary = one.side.summary
        names = (one.name("reuse-rate"), one.name("reuse-tokens"), one.name("reuse-curve"))
        return distance_plots(names, one.reuse, summary.achieved.capacity_tokens, summary.hit_rate.rate)

    columns: Columns = each(found, plots)
    if len(found) == 1 and len(columns[0]) > 1:
        columns = [columns[0][:2], columns[0][2:]]
    rows = [
        (one.side.name, f"{count(round(at.from_tokens))} to {count(round(at.to_tokens))}",
         tokens(at.tokens), percent(at.rate))
        for one in found
        if one.reuse
        for at in one.reuse.distances
    ]  # fmt: skip
    table = side_table(found, ("target", "distinct tokens since", "prompt tokens", "from the cache"), rows)
    lead = (
        f"Prompt tokens by their {term('reuse-distance', 'reuse distance')}: how much was sent since they were sent "
        f"last. What lies right of the capacity an LRU cache has evicted. {term('lru-curve', 'The curve')} is what "
        "such a cache would serve at every capacity."
    )
    after = ([folded("By reuse distance", table)] if rows else []) + [sentences(found, _blocks)]
    return Section("reuse", "Hit rate against reuse distance", lead, columns, headings(found), after)


def _blocks(one: Findings) -> Iterator[str]:
    if one.reuse is not None:
        yield (
            f"Counted in blocks of {one.reuse.block_tokens:,} tokens; {tokens(one.reuse.first_tokens)} tokens of "
            "measured prompts had never been sent before and have no distance."
        )
        if covers := one.side.summary.coverage.sentence():
            yield covers
