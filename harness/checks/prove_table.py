"""A proof as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.checks.laboratory import Finding
from harness.checks.prove import Proof
from harness.checks.prove_evidence import Count, Measure, by_counter, by_usage
from harness.checks.prove_plan import NAMES, Name

MEANINGS: dict[Name, str] = {
    "cold": "new",
    "warm": "the same",
    "repeat": "the same",
    "tail": "nine tenths",
    "middle": "half",
    "first": "control",
}


def render(proof: Proof, finding: Finding, console: Console) -> None:
    """Requests, warm-up and verdict of one target, in 80 columns."""
    laboratory = proof.laboratory
    console.print(Text(f"{laboratory.target.name}: {laboratory.identity.engine}, {laboratory.identity.model}"))
    if proof.unrelated.first_ms is not None and proof.unrelated.short_ms:
        console.print(
            Text(
                f"Warm-up: the first request took {proof.unrelated.first_ms:.1f} ms, later ones of its length "
                f"{median(proof.unrelated.short_ms):.1f} ms."
            )
        )
    for note in laboratory.notes:
        console.print(Text(f"Note: {note}"))
    if proof.failed:
        console.print(Text(f"Note: {proof.failed} prefixes were left out, as a request failed."))
    console.print(_table(proof))
    render_verdict(finding, console)
    console.print(Text(f"Recorded in {laboratory.folder}."))


def render_verdict(finding: Finding, console: Console) -> None:
    console.print(Text.assemble("Verdict: ", (finding.verdict, "bold"), f". {finding.sentence}"))


def _table(proof: Proof) -> Table:
    prefixes = len({one.prefix for one in proof.measures})
    title = f"Medians over {prefixes} prefixes of {proof.prefix_tokens} tokens"
    table = Table("prompt", "prefix", title=title, title_justify="left")
    for heading in ("n", "tokens", "expected", "answer", "counter", "TTFT ms"):
        table.add_column(heading, justify="right")
    for name in NAMES:
        measures = [one for one in proof.measures if one.name == name]
        if measures:
            table.add_row(name, MEANINGS[name], *_cells(measures, proof.laboratory.identity.granularity_tokens))
    return table


def _cells(measures: Sequence[Measure], granularity_tokens: int | None) -> list[str]:
    times = [one.ttft_ms for one in measures if one.ttft_ms is not None]
    return [
        str(len(measures)),
        f"{median(one.prompt_tokens for one in measures):.0f}",
        f"{median(one.expected(granularity_tokens) for one in measures):.0f}",
        _median(measures, by_usage),
        _median(measures, by_counter),
        f"{median(times):.1f}" if times else "-",
    ]


def _median(measures: Sequence[Measure], count: Count) -> str:
    """A dash where there is no count, which is never taken for 0."""
    known = [cached for one in measures if (cached := count(one)) is not None]
    return f"{median(known):.0f}" if known else "-"
