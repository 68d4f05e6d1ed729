"""A stand-in for Prometheus whose scrapes, clock and slowness a test chooses."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.engines.scripted_server import Request, Serve

TARGET = {"job": "x", "instance": "engine:8000"}


@dataclass
class ScriptedPrometheus:
    """Scrapes number 0, 1, 2, ... of one target, `interval_s` apart; number `past` is taken just before it is made."""

    pages: list[dict[str, float] | None]
    """Name -> value on the page of each scrape, the last one for all that follow; None: the target was down."""
    interval_s: float = 0.2
    ahead_s: float = 0.0
    """How far its clock is ahead of ours."""
    lateness_s: float = 0.0
    """How long after its beginning a scrape can be asked for."""
    past: int = 0
    stopped: bool = False
    """It does not scrape any more."""
    types: dict[str, str] = field(default_factory=lambda: {"tokens_total": "counter", "running": "gauge"})
    target: dict[str, str] = field(default_factory=lambda: dict(TARGET))
    queries: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began_ms = round((self._now_s() - 0.01 - self.past * self.interval_s) * 1e3)

    def serve(self, serve: Serve) -> str:
        return serve(_Routes(self))

    def _now_s(self) -> float:
        return time.time() + self.ahead_s

    def _scrapes(self, from_ms: int, to_ms: float) -> list[tuple[int, dict[str, float] | None]]:
        every_ms = round(self.interval_s * 1e3)
        visible_ms = min(to_ms, (self._now_s() - self.lateness_s) * 1e3)
        if self.stopped:
            visible_ms = self.began_ms + self.past * every_ms
        count = int((visible_ms - self.began_ms) // every_ms) + 1
        times = [(number, self.began_ms + number * every_ms) for number in range(max(0, count))]
        last = len(self.pages) - 1
        return [(at_ms, self.pages[min(number, last)]) for number, at_ms in times if from_ms <= at_ms]

    def scrape_times_ns(self) -> list[int]:
        """Of all scrapes until now."""
        return [at_ms * 10**6 for at_ms, _ in self._scrapes(0, float("inf"))]

    def answer(self, request: Request) -> Any:
        self.headers.append(request["headers"])
        parts = urlsplit(request["path"])
        if parts.path == "/api/v1/metadata":
            return _success({name: [{"type": kind, "help": "", "unit": ""}] for name, kind in self.types.items()})
        given = {name: texts[0] for name, texts in parse_qs(parts.query).items()}
        query, now_s = given["query"], self._now_s()
        self.queries.append(query)
        at_s = float(given.get("time", now_s))
        if query == "time()":
            return _success({"resultType": "scalar", "result": [now_s, f"{now_s:.3f}"]})
        if query.startswith("timestamp(up{"):
            newest = self._scrapes(0, at_s * 1e3)[-1:]
            return _success(
                {"result": [{"metric": self.target, "value": [at_s, str(at_ms / 1e3)]} for at_ms, _ in newest]}
            )
        found = re.fullmatch(r"(up)?\{.*\}\[(\d+)(ms|s)\]", query)
        assert found is not None, query
        window_ms = int(found[2]) * (1 if found[3] == "ms" else 1000)
        scrapes = self._scrapes(round(at_s * 1e3) - window_ms, at_s * 1e3)
        series = self._series(scrapes)
        if found[1]:
            series = [one for one in series if one["metric"]["__name__"] == "up"]
        return _success({"resultType": "matrix", "result": series})

    def _series(self, scrapes: list[tuple[int, dict[str, float] | None]]) -> list[dict[str, Any]]:
        values: dict[str, list[list[Any]]] = {}
        for at_ms, page in scrapes:
            with_own = {"up": 0.0 if page is None else 1.0, "scrape_duration_seconds": 0.004, **(page or {})}
            for name, value in with_own.items():
                values.setdefault(name, []).append([at_ms / 1e3, str(value)])
        return [{"metric": {"__name__": name, **self.target}, "values": of} for name, of in values.items()]


class _Routes(dict[str, Any]):
    def __init__(self, prometheus: ScriptedPrometheus) -> None:
        self._prometheus = prometheus

    def get(self, key: str, default: Any = None) -> Any:
        return self._prometheus.answer if key.startswith("GET /api/v1/") else default


def _success(data: Any) -> str:
    return json.dumps({"status": "success", "data": data})
