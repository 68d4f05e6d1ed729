"""Pages for a scripted server, and what a collector makes of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.collector import Row
from harness.collector.pages import PageCollector
from harness.engines.target import Target
from tests.engines.scripted_server import Serve


def page_of(running: int, tokens: int) -> str:
    return f"# TYPE running gauge\nrunning {running}\n# TYPE tokens_total counter\ntokens_total {tokens}\n"


def one_after_another(pages: list[Any]) -> Callable[[object], Any]:
    """Answers with the pages in turn; the last one stays."""
    endless: Iterator[Any] = itertools.chain(pages, itertools.repeat(pages[-1]))
    return lambda _: next(endless)


def collect(serve: Serve, answer: Any, every_s: float = 1.0) -> tuple[PageCollector, list[Row]]:
    """Of a target with one page."""
    return collect_all([serve({"GET /metrics": answer}) + "/metrics"], every_s)


def collect_all(urls: list[str], every_s: float = 1.0) -> tuple[PageCollector, list[Row]]:
    rows: list[Row] = []
    return PageCollector(Target(url="http://engine", metrics_urls=tuple(urls)), rows.extend, every_s), rows


def idle(metrics: Mapping[str, float]) -> bool:
    return metrics["running"] == 0


def moments(rows: list[Row]) -> list[str]:
    """Of each scrape."""
    return [row["moment"] for row in rows if row["name"] == "up"]


def values(rows: list[Row], name: str) -> list[float]:
    return [row["value"] for row in rows if row["name"] == name]


def resets(rows: list[Row], name: str) -> list[bool | None]:
    return [row["reset"] for row in rows if row["name"] == name]
