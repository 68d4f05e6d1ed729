"""What a check found, as tables for a terminal."""

from __future__ import annotations

from dataclasses import fields

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.checks.by_hand import Checked
from harness.engines.base import Identity
from harness.record.manifest import Probe, StartUpCheck

_FIELDS = [item.name for item in fields(Identity) if item.name not in ("details", "unknown", "by_hand")]
"""Of an identity, those that hold one thing."""


def render(checked: Checked, console: Console) -> None:
    """Identity, requests and verdict of one target."""
    console.print(_identity(checked.identity, f"{checked.target.name} ({checked.target.url})"))
    for note in checked.lexicon.notes:
        console.print(f"Note: {escape(note)}")
    if checked.check.probes:
        console.print(_probes(checked.check))
    console.print(f"Verdict: [bold]{checked.check.verdict}[/bold]. {escape(checked.check.sentence)}")


def _identity(identity: Identity, title: str) -> Table:
    """What is known, a row each, then what is not: all that is unknown for one reason in one row."""
    table = Table("", "", title=escape(title), title_justify="left", show_header=False)
    table.columns[1].overflow = "fold"
    known = {name: getattr(identity, name) for name in _FIELDS} | dict(identity.details)
    for name, value in known.items():
        if value is not None:
            table.add_row(name, escape(f"{value} (by hand)" if name in identity.by_hand else str(value)))
    table.add_section()
    unknown: dict[str, list[str]] = {}
    for name, reason in identity.unknown.items():
        unknown.setdefault(reason, []).append(name)
    for reason, names in unknown.items():
        table.add_row("\n".join(names), f"[dim]not known: {escape(reason)}[/dim]")
    return table


def _probes(check: StartUpCheck) -> Table:
    granularity = check.granularity_tokens
    shown = "" if granularity is None else f"; the counts show blocks of {granularity} token{'s'[: granularity > 1]}"
    title = f"Cached tokens of each request{shown}"
    table = Table("request", title=title, title_justify="left")
    for heading in ("prompt tokens", "expected", "by the answer", "by the counter", "TTFT ms"):
        table.add_column(heading, justify="right")
    for probe in check.probes:
        table.add_row(
            probe.name,
            _count(probe.prompt_tokens),
            _expected(probe),
            _count(probe.usage_cached_tokens),
            _count(probe.counter_cached_tokens),
            "-" if probe.ttft_ms is None else f"{probe.ttft_ms:.1f}",
        )
    return table


def _expected(probe: Probe) -> str:
    least = probe.expected_cached_tokens
    if least is None or not probe.allowance_tokens:
        return _count(least)
    return f"{least} to {least + probe.allowance_tokens}"


def _count(count: int | None) -> str:
    return "-" if count is None else str(count)
