"""Hit rate against capacity, as an SVG picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from harness.cache.reuse_distance import ReuseDistances
from harness.errors import InputError
from harness.traces.reuse import Reuse

WIDTH, HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 30, 64, 60
_POINTS = 400
_MARKED = "0.9"
_STYLE = (
    "text{font:13px sans-serif;fill:#333}.title{font-size:16px;font-weight:600}.note{fill:#666}"
    ".grid{stroke:#ddd}.axis{stroke:#333}.curve{fill:none;stroke:#0b62a4;stroke-width:2.5}.band{fill:#0b62a4;opacity:.15}"
    ".limit{stroke:#999;stroke-dasharray:6 4}.mark{fill:#c44e00}"
)


def write_plot(path: Path, reuse: Reuse, distances: ReuseDistances) -> None:
    """Write the picture of the whole curve to `path`. Raises InputError if that cannot be, or if there is no curve."""
    if path.suffix.lower() != ".svg":
        raise InputError(f"{path}: the plot is an SVG picture; give a name that ends with .svg")
    if reuse.capacity_serving[_MARKED] is None:
        raise InputError(f"{reuse.trace}: nothing can be served at any capacity, so there is nothing to plot")
    try:
        path.write_text(plot(reuse, distances), encoding="utf-8")
    except OSError as problem:
        raise InputError(f"{path}: cannot be written: {problem.strerror}") from None


def plot(reuse: Reuse, distances: ReuseDistances) -> str:
    """The text of the picture; the capacities are on a logarithmic axis."""
    largest = max(distances.capacity_serving(1.0) or 0, 2 * reuse.block_tokens)
    axes = _Axes(reuse.block_tokens, largest * 1.3, _upper(reuse.infinite.high))
    sampled = f" ({distances.sampled_share:.3g} of the blocks sampled)" if distances.sampled_share < 1 else ""
    capacities = [axes.capacity(part / _POINTS) for part in range(_POINTS + 1)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
            f"<style>{_STYLE}</style>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            *axes.drawn(f"{reuse.trace}: token hit rate of an LRU cache{sampled}"),
            *_curve(axes, distances, capacities),
            *_limit(axes, reuse),
            *_mark(axes, reuse, distances),
            "</svg>",
            "",
        ]
    )


class _Axes:
    def __init__(self, smallest_tokens: float, largest_tokens: float, highest: float) -> None:
        self.low, self.high = math.log10(smallest_tokens), math.log10(largest_tokens)
        self.highest = highest

    def capacity(self, part: float) -> float:
        """In tokens, at a part of the axis."""
        return float(10 ** (self.low + part * (self.high - self.low)))

    def x(self, capacity_tokens: float) -> float:
        part = (math.log10(capacity_tokens) - self.low) / (self.high - self.low)
        return round(_LEFT + part * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, hit_rate: float) -> float:
        return round(HEIGHT - _BOTTOM - hit_rate / self.highest * (HEIGHT - _TOP - _BOTTOM), 1)

    def drawn(self, title: str) -> Iterator[str]:
        left, right, bottom = _LEFT, WIDTH - _RIGHT, HEIGHT - _BOTTOM
        yield f'<text class="title" x="{left}" y="28">{escape(title)}</text>'
        for exponent in range(math.ceil(self.low), math.floor(self.high) + 1):
            x = self.x(10**exponent)
            yield f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}"/>'
            yield f'<text x="{x}" y="{bottom + 20}" text-anchor="middle">{_power(exponent)}</text>'
        for part in range(6):
            rate = self.highest * part / 5
            y = self.y(rate)
            yield f'<line class="grid" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>'
            yield f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{rate:.2g}</text>'
        yield f'<line class="axis" x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
        yield f'<line class="axis" x1="{left}" x2="{left}" y1="{_TOP}" y2="{bottom}"/>'
        yield f'<text x="{(left + right) / 2}" y="{HEIGHT - 14}" text-anchor="middle">capacity in tokens</text>'
        middle = (_TOP + bottom) / 2
        turned = f'text-anchor="middle" transform="rotate(-90 20 {middle})"'
        yield f'<text x="20" y="{middle}" {turned}>token hit rate</text>'


def _curve(axes: _Axes, distances: ReuseDistances, capacities: Sequence[float]) -> Iterator[str]:
    if distances.sampled_share < 1:
        bounds = [distances.bounds(capacity) for capacity in capacities]
        edge = [(capacity, one.high) for capacity, one in zip(capacities, bounds, strict=True)]
        edge += [(capacity, one.low) for capacity, one in reversed(list(zip(capacities, bounds, strict=True)))]
        yield f'<polygon class="band" points="{_points(axes, edge)}"/>'
    curve = [(capacity, distances.hit_rate(capacity)) for capacity in capacities]
    yield f'<polyline class="curve" points="{_points(axes, curve)}"/>'


def _points(axes: _Axes, points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{axes.x(capacity)},{axes.y(rate)}" for capacity, rate in points)


def _limit(axes: _Axes, reuse: Reuse) -> Iterator[str]:
    y = axes.y(reuse.infinite.hit_rate)
    yield f'<line class="limit" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
    yield f'<text class="note" x="{_LEFT + 8}" y="{y - 6}">infinite cache: {reuse.infinite.hit_rate:.4f}</text>'


def _mark(axes: _Axes, reuse: Reuse, distances: ReuseDistances) -> Iterator[str]:
    capacity = reuse.capacity_serving[_MARKED]
    if capacity is not None:
        x, y = axes.x(capacity), axes.y(distances.hit_rate(capacity))
        yield f'<circle class="mark" cx="{x}" cy="{y}" r="4.5"/>'
        yield f'<circle class="mark" cx="{_LEFT + 5}" cy="44" r="4.5"/>'
        words = f"{capacity:,} tokens serve {float(_MARKED):.0%} of what can be served"
        yield f'<text class="note" x="{_LEFT + 16}" y="48">{words}</text>'


def _upper(rate: float) -> float:
    """The least of 0.05, 0.1, 0.25, 0.5 and 1 that leaves room above `rate`."""
    return next(upper for upper in (0.05, 0.1, 0.25, 0.5, 1.0) if rate * 1.1 <= upper or upper == 1.0)


def _power(exponent: int) -> str:
    units = ("", " k", " M", " G", " T")
    group, rest = divmod(exponent, 3)
    return f"{10**rest}{units[group]}"
