"""One look at a metrics page."""

from __future__ import annotations

import time
from dataclasses import dataclass
from http import HTTPStatus

import gevent
import requests

from harness.collector.metrics_page import Sample, parse
from harness.engines.control import answer_in_short, reason

TIMEOUT_S = 5.0

_HEADERS = {"Accept": "text/plain;version=0.0.4", "Connection": "close"}

_START_HEADER = "Process-Start-Time-Unix"
"""llama.cpp's. In spite of its name it holds the microseconds of the machine's monotonic clock."""

_ABSENT = (
    ": there are no server metrics; start llama-server with --metrics, SGLang with --enable-metrics, "
    "or give metrics_urls in a target file"
)


@dataclass(frozen=True, slots=True)
class Scrape:
    t_ns: int
    """When the page was asked for, in ns since the epoch; it is of this moment or up to `duration_ms` later."""
    duration_ms: float
    """From asking to the last byte."""
    samples: tuple[Sample, ...]
    error: str | None
    """Why there are no samples; None: the page was read."""
    is_absent: bool = False
    """The server says that it has no metrics page, so that asking again is of no use."""
    start_mark: str | None = None
    """What the server sent to tell its process from one that was started before or after it; None: nothing."""


def scrape(session: requests.Session, url: str) -> Scrape:
    """Read the page at `url`. What goes wrong stands in the result. Lets other greenlets run while it parses."""
    t_ns, began_ns = time.time_ns(), time.perf_counter_ns()
    response: requests.Response | None = None
    problem = None
    try:
        response = session.get(url, headers=_HEADERS, timeout=TIMEOUT_S)
    except requests.RequestException as failure:
        problem = f"GET {url} failed: {reason(failure, url)}"
    finally:
        # Not kept for the next scrape: a server may close an idle connection just as that begins.
        session.close()
    duration_ms = (time.perf_counter_ns() - began_ns) / 1e6
    if response is None:
        return Scrape(t_ns, duration_ms, (), problem)
    if response.status_code != HTTPStatus.OK:
        is_absent = response.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED)
        problem = f"GET {url} answered {answer_in_short(response)}{_ABSENT if is_absent else ''}"
        return Scrape(t_ns, duration_ms, (), problem, is_absent)
    try:
        samples = parse(response.content.decode(), between_families=gevent.sleep)
    except ValueError as failure:
        problem = f"what GET {url} answered is no Prometheus metrics page: {failure}"
        return Scrape(t_ns, duration_ms, (), problem)
    return Scrape(t_ns, duration_ms, tuple(samples), None, start_mark=response.headers.get(_START_HEADER))
