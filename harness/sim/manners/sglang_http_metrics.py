"""The part of SGLang's metrics page that counts HTTP requests."""

from __future__ import annotations

from prometheus_client import Gauge

from harness.sim.manners.families import Families
from harness.sim.web import Answer, Call, Streamed


class HttpFamilies:
    """Series are there from the first request on, for any path that was asked for."""

    def __init__(self, process: Families) -> None:
        self._families = process

    def began(self, call: Call) -> Gauge:
        """Count a request; the gauge of those under way, to be taken one down at its end."""
        labels = {"endpoint": call.path, "method": call.method}
        self._families.counter("http_requests", "Requests by path.", **labels).inc()
        active = self._families.gauge("http_requests_active", "Requests under way.", **labels)
        active.inc()
        return active

    def answered(self, call: Call, answer: Answer | Streamed) -> None:
        status = str(answer.status if isinstance(answer, Answer) else 200)
        labels = {"endpoint": call.path, "method": call.method, "status_code": status}
        self._families.counter("http_responses", "Responses by path and status.", **labels).inc()
