"""The part of vLLM's metrics page that counts HTTP requests: as prometheus-fastapi-instrumentator names it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Summary

from harness.sim.manners.families import Families
from harness.sim.web import Answer, Call, Streamed

NOT_COUNTED = {"/metrics", "/health", "/load", "/ping", "/version", "/server_info"}
ALL_S = [0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60]
FEW_S = [0.1, 0.5, 1]


class HttpFamilies:
    """Series are there from the first request on."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._families = Families(registry)
        self._asked = Summary("http_request_size_bytes", "Content-Length of requests.", ["handler"], registry=registry)
        text = "Content-Length of responses, of which streams have none."
        self._said = Summary("http_response_size_bytes", text, ["handler"], registry=registry)
        self._all = self._families.histogram("http_request_duration_highr_seconds", "Of any request.", ALL_S)

    def count(self, call: Call, answer: Answer | Streamed, known: bool, duration_s: float) -> None:
        """`known`: there is such a path."""
        if call.path in NOT_COUNTED:
            return
        path = call.path if known else "none"
        status = f"{(answer.status if isinstance(answer, Answer) else 200) // 100}xx"
        labels = {"handler": path, "method": call.method}
        self._families.counter("http_requests", "Requests by path.", status=status, **labels).inc()
        self._asked.labels(path).observe(len(call.body))
        self._said.labels(path).observe(len(answer.body) if isinstance(answer, Answer) else 0)
        self._all.observe(duration_s)
        self._families.histogram("http_request_duration_seconds", "By path.", FEW_S, **labels).observe(duration_s)
