"""Hit rates of several runs beside what the cache model predicts of each: as points, a table and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from rich import box
from rich.table import Table

from harness.analysis.numbers import UNKNOWN, milliseconds, percent, with_unit
from harness.analysis.summary import Summary

MEANING = (
    "measured and expected: cached / prompt tokens, as the answers report and as the model of the engine's cache has "
    "it, over the requests that report; off: expected - measured in percent of the prompt tokens; TTFT: median in ms."
)
WIDTH, HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 64, 72, 56
_STYLE = (
    "text{font:13px sans-serif;fill:#333}.title{font-size:16px;font-weight:600}.grid{stroke:#ddd}.axis{stroke:#333}"
    ".measured{fill:#0b62a4}.line{fill:none;stroke:#0b62a4;stroke-width:2}.expected{fill:none;stroke:#c44e00;"
    "stroke-width:2.5}.ttft{fill:none;stroke:#777;stroke-width:1.5;stroke-dasharray:5 4}.grey{fill:#777}"
)


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep; None: not known."""

    value: str
    """Of the key that was swept."""
    measured: float | None
    expected: float | None
    ttft_ms: float | None
    """Median over all measured requests."""


def points(summaries: Mapping[str, Summary]) -> list[Point]:
    """One for each run, in their order."""
    return [_point(value, summary) for value, summary in summaries.items()]


def _point(value: str, summary: Summary) -> Point:
    steps = summary.waterfall.steps
    ttft = next((group.times.ttft.p50 for group in summary.groups if group.warmth == "all"), None)
    if steps is None or not steps.prompt_tokens:
        return Point(value, summary.hit_rate.rate, None, ttft)
    measured = None if steps.measured is None else steps.measured / steps.prompt_tokens
    return Point(value, measured, steps.expected / steps.prompt_tokens, ttft)


def prediction_table(setting: str, found: Sequence[Point]) -> Table:
    """A line for each point."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1))
    table.add_column(setting, no_wrap=True)
    for heading in ("measured", "expected", "off", "TTFT p50"):
        table.add_column(heading, justify="right", no_wrap=True)
    for point in found:
        table.add_row(
            point.value, percent(point.measured), percent(point.expected), _off(point), milliseconds(point.ttft_ms)
        )
    return table


def _off(point: Point) -> str:
    if point.measured is None or point.expected is None:
        return UNKNOWN
    off = round(100 * (point.expected - point.measured), 2)
    return f"{off:+.2f}" if off else "0.00"


def prediction_plot(title: str, setting: str, found: Sequence[Point]) -> str:
    """An SVG picture: both hit rates over the values in their order, and TTFT on an axis of its own."""
    slowest = max((point.ttft_ms for point in found if point.ttft_ms is not None), default=None)
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
            f"<style>{_STYLE}</style>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            f'<text class="title" x="{_LEFT}" y="26">{escape(title)}</text>',
            *_legend(),
            *_axes(slowest),
            f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">{escape(setting)}</text>',
            *_names(found),
            *_series(found, slowest),
            "</svg>",
            "",
        ]
    )


def _legend() -> Iterator[str]:
    yield f'<circle class="measured" cx="{_LEFT + 6}" cy="46" r="4.5"/>'
    yield f'<text x="{_LEFT + 16}" y="50">hit rate, measured</text>'
    yield f'<circle class="expected" cx="{_LEFT + 176}" cy="46" r="6"/>'
    yield f'<text x="{_LEFT + 188}" y="50">hit rate, expected by the cache model</text>'
    yield f'<line class="ttft" x1="{_LEFT + 440}" x2="{_LEFT + 470}" y1="46" y2="46"/>'
    yield f'<text x="{_LEFT + 478}" y="50">TTFT p50 (right)</text>'


def _axes(slowest_ms: float | None) -> Iterator[str]:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for part in range(6):
        y = _y(part / 5)
        yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{part * 20} %</text>'
        if slowest_ms is not None:
            yield f'<text class="grey" x="{right + 8}" y="{y + 4}">{with_unit(slowest_ms * part / 5)}</text>'
    yield f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
    yield f'<line class="axis" x1="{_LEFT}" x2="{_LEFT}" y1="{_TOP}" y2="{bottom}"/>'


def _names(found: Sequence[Point]) -> Iterator[str]:
    for number, point in enumerate(found):
        x = _x(number, len(found))
        yield f'<text x="{x}" y="{HEIGHT - _BOTTOM + 20}" text-anchor="middle">{escape(point.value)}</text>'


def _series(found: Sequence[Point], slowest_ms: float | None) -> Iterator[str]:
    placed = [(_x(number, len(found)), point) for number, point in enumerate(found)]
    if slowest_ms:
        times = [(x, _y(point.ttft_ms / slowest_ms)) for x, point in placed if point.ttft_ms is not None]
        yield f'<polyline class="ttft" points="{_joined(times)}"/>'
    measured = [(x, _y(point.measured)) for x, point in placed if point.measured is not None]
    yield f'<polyline class="line" points="{_joined(measured)}"/>'
    for x, y in measured:
        yield f'<circle class="measured" cx="{x}" cy="{y}" r="4.5"/>'
    for x, point in placed:
        if point.expected is not None:
            yield f'<circle class="expected" cx="{x}" cy="{_y(point.expected)}" r="7.5"/>'


def _joined(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in places)


def _x(number: int, count: int) -> float:
    """The middle of the number-th of `count` equal parts: values need not be numbers, nor evenly spaced."""
    return round(_LEFT + (number + 0.5) / count * (WIDTH - _LEFT - _RIGHT), 1)


def _y(part: float) -> float:
    return round(HEIGHT - _BOTTOM - part * (HEIGHT - _TOP - _BOTTOM), 1)
