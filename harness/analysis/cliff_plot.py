"""The picture of `harness.analysis.cliff`: for each engine hit rates above, times to first token below."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from harness.analysis.cliff import Cliffs, Place
from harness.analysis.numbers import milliseconds

WIDTH = 960
_LEFT, _RIGHT, _BETWEEN = 62, 24, 34
_RATES, _TIMES = (136, 190), (372, 130)
"""Top and height of the two rows of panels."""
_HEIGHT = 564
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#333}.title{font-size:18px;font-weight:600}.engine{font-size:15px;"
    "font-weight:600}.small{font-size:12px;fill:#666}.grid{stroke:#e3e3e3}.axis{stroke:#888}.full{stroke:#888;"
    "stroke-dasharray:2 3}.shareable{fill:none;stroke:#888;stroke-width:1.5;stroke-dasharray:6 4}.lost{fill:#f6d9d0;"
    "stroke:none}.line{fill:none;stroke:#0b62a4;stroke-width:2}.measured{fill:#0b62a4}.expected{fill:none;"
    "stroke:#c44e00;stroke-width:2}.time{fill:none;stroke:#5b3a8c;stroke-width:2}.dot{fill:#5b3a8c}"
    ".slow{fill:none;stroke:#5b3a8c;stroke-width:1.5;stroke-dasharray:5 4}.rate{font-weight:600;fill:#0b62a4}"
    ".rate,.ms{paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".ms{font-weight:600;fill:#5b3a8c}"
)
_KEY = (
    ('<line class="shareable" x1="0" x2="26" y1="-4" y2="-4"/>', "in an endless cache"),
    ('<rect class="lost" x="0" width="26" y="-10" height="12"/>', "lost"),
    ('<circle class="measured" cx="13" cy="-4" r="4.5"/>', "measured"),
    ('<circle class="expected" cx="13" cy="-4" r="7"/>', "expected by the cache model"),
    ('<line class="time" x1="0" x2="26" y1="-4" y2="-4"/>', "TTFT, median"),
    ('<line class="slow" x1="0" x2="26" y1="-4" y2="-4"/>', "p99"),
)


def cliff_plot(title: str, subtitle: str, cliffs: Cliffs) -> str:
    """An SVG picture with two panels for each engine; those of a row share their scale."""
    slowest = _round_up(
        max((time for places in cliffs.values() for one in places for time in _times(one)), default=1.0)
    )
    width = (WIDTH - _LEFT - _RIGHT - _BETWEEN * (len(cliffs) - 1)) / len(cliffs)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {_HEIGHT}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text class="title" x="{_LEFT}" y="32">{escape(title)}</text>',
        f'<text class="small" x="{_LEFT}" y="52">{escape(subtitle)}</text>',
        *_key(),
    ]
    for number, (engine, places) in enumerate(cliffs.items()):
        left = round(_LEFT + number * (width + _BETWEEN), 1)
        parts += _panels(engine, places, left, round(width, 1), slowest, with_scale=number == 0)
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{_HEIGHT - 14}" text-anchor="middle">'
        "pressure: working set as a multiple of the KV cache</text>"
    )
    return "\n".join([*parts, "</svg>", ""])


def _key() -> Iterator[str]:
    x = float(_LEFT)
    for mark, words in _KEY:
        yield f'<g transform="translate({x:.0f} 78)">{mark}<text class="small" x="32" y="0">{words}</text></g>'
        x += 52 + 6.4 * len(words)


def _panels(
    engine: str, places: Sequence[Place], left: float, width: float, slowest: float, with_scale: bool
) -> Iterator[str]:
    xs = [round(left + (number + 0.5) / len(places) * width, 1) for number in range(len(places))]
    yield f'<text class="engine" x="{left}" y="{_RATES[0] - 28}">{escape(engine)}</text>'
    for (top, _), heading in ((_RATES, "prompt tokens from the cache, %"), (_TIMES, "time to first token, ms")):
        yield f'<text class="small" x="{left}" y="{top - 10}">{heading}</text>'
    for row, greatest in ((_RATES, 100.0), (_TIMES, slowest)):
        yield from _frame(row, left, width, [f"{greatest * part / 4:,g}" if with_scale else "" for part in range(5)])
    yield from _full(places, xs)
    yield from _rates(places, xs)
    yield from _speeds(places, xs, slowest)
    for x, one in zip(xs, places, strict=True):
        yield f'<text x="{x}" y="{sum(_TIMES) + 20}" text-anchor="middle">{escape(one.value)}</text>'


def _frame(row: tuple[int, int], left: float, width: float, names: Sequence[str]) -> Iterator[str]:
    for part, name in enumerate(names):
        y = _y(row, part / (len(names) - 1))
        kind = "grid" if part else "axis"
        yield f'<line class="{kind}" x1="{left}" x2="{left + width}" y1="{y}" y2="{y}"/>'
        if name:
            yield f'<text class="small" x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(name)}</text>'


def _full(places: Sequence[Place], xs: Sequence[float]) -> Iterator[str]:
    """A line at a pressure of 1, beyond which not everything fits; between two pressures if there was no such run."""
    fitting = [x for x, one in zip(xs, places, strict=True) if float(one.value) <= 1]
    if fitting and len(fitting) < len(xs):
        is_there = float(places[len(fitting) - 1].value) == 1
        x = fitting[-1] if is_there else (fitting[-1] + xs[len(fitting)]) / 2
        yield f'<line class="full" x1="{x}" x2="{x}" y1="{_RATES[0]}" y2="{sum(_TIMES)}"/>'
        yield f'<text class="small" x="{x - 6}" y="{sum(_RATES) - 8}" text-anchor="end">fits</text>'
        yield f'<text class="small" x="{x + 6}" y="{sum(_RATES) - 8}">does not fit</text>'


def _rates(places: Sequence[Place], xs: Sequence[float]) -> Iterator[str]:
    shareable = [(x, _y(_RATES, one.shareable)) for x, one in zip(xs, places, strict=True) if one.shareable is not None]
    measured = [(x, _y(_RATES, one.measured)) for x, one in zip(xs, places, strict=True) if one.measured is not None]
    if len(shareable) == len(measured):
        yield f'<polygon class="lost" points="{_joined([*shareable, *reversed(measured)])}"/>'
    yield f'<polyline class="shareable" points="{_joined(shareable)}"/>'
    yield f'<polyline class="line" points="{_joined(measured)}"/>'
    for x, one in zip(xs, places, strict=True):
        if one.expected is not None:
            yield f'<circle class="expected" cx="{x}" cy="{_y(_RATES, one.expected)}" r="7.5"/>'
        if one.measured is not None:
            y = _y(_RATES, one.measured)
            yield f'<circle class="measured" cx="{x}" cy="{y}" r="4.5"/>'
            is_below = one.expected is not None and one.expected < one.measured - 0.02
            beside = y - 12 if is_below else y + 24
            yield f'<text class="rate" x="{x}" y="{beside}" text-anchor="middle">{one.measured:.0%}</text>'


def _speeds(places: Sequence[Place], xs: Sequence[float], slowest: float) -> Iterator[str]:
    for name, field in (("slow", "ttft_p99_ms"), ("time", "ttft_p50_ms")):
        times = [(x, getattr(one, field)) for x, one in zip(xs, places, strict=True)]
        known = [(x, _y(_TIMES, time / slowest)) for x, time in times if time is not None]
        yield f'<polyline class="{name}" points="{_joined(known)}"/>'
    for x, one in zip(xs, places, strict=True):
        if one.ttft_p50_ms is not None:
            y = _y(_TIMES, one.ttft_p50_ms / slowest)
            yield f'<circle class="dot" cx="{x}" cy="{y}" r="4"/>'
            yield (f'<text class="ms" x="{x}" y="{y - 10}" text-anchor="middle">{milliseconds(one.ttft_p50_ms)}</text>')


def _times(one: Place) -> Iterator[float]:
    yield from (time for time in (one.ttft_p50_ms, one.ttft_p99_ms) if time is not None and math.isfinite(time))


def _round_up(value: float) -> float:
    """To 1, 2, 4 or 8 times a power of ten, whose quarters are short numbers."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(factor * power for factor in (1, 2, 4, 8, 10) if factor * power >= value)


def _joined(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in places)


def _y(row: tuple[int, int], part: float) -> float:
    top, height = row
    return round(top + height - part * height, 1)
