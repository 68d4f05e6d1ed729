"""Points over time that a page draws as lines: never more than so many of them, however long a run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST = 600
Point = Mapping[str, Any]


class History:
    """Of one target. When it is full, every second point is dropped, and from then on they are kept half as often."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._every = 1
        self._seen = 0
        self._newest: Point | None = None

    def add(self, point: Point) -> None:
        self._newest = point
        if self._seen % self._every == 0:
            self._points.append(point)
        self._seen += 1
        if len(self._points) >= MOST:
            self._points = self._points[::2]
            self._every *= 2

    def since(self, every: int, count: int) -> dict[str, Any]:
        """What a page lacks that has `count` points of those kept at one in `every`: all of them after a thinning.

        {"every", "count" (how many there are now), "from" (number of the first one given), "points", "newest"}.
        """
        start = count if every == self._every and count <= len(self._points) else 0
        return {
            "every": self._every,
            "count": len(self._points),
            "from": start,
            "points": self._points[start:],
            "newest": self._newest,
        }
