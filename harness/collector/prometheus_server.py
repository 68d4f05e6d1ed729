"""Questions to a Prometheus server about the series of one target."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from urllib3.util import Retry

from harness.engines.control import answer_in_short, open_session, reason
from harness.engines.target import Prometheus, Target

DEFAULT_INTERVAL_S = 60.0
"""Prometheus's own default, taken where its samples do not tell the scrape interval yet."""
INTERVAL_WINDOW_S = 900
"""How far back its scrapes are looked at to learn the interval."""

Labels = Mapping[str, str]
Series = Mapping[str, Any]
"""`metric`: labels, the name as __name__; `values`: [[seconds since the epoch, value as text], ...]."""

_T = TypeVar("_T")


class PrometheusError(Exception):
    """Prometheus does not answer, or not as it should; the message is a sentence."""


class _Refused(Exception):
    def __init__(self, answer: requests.Response) -> None:
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Clock:
    now_ms: int
    """Prometheus's time, in ms since the epoch, as in the times of its samples."""
    ahead_ms: float
    """How far that is ahead of this machine's clock."""
    error_ms: float
    """Upper bound of the error of `ahead_ms`."""


class PrometheusServer:
    """Every method raises PrometheusError.

    Only instant queries are sent, some with a range selector, so that samples come as they were scraped: a query over
    a range of steps would make up values in between.
    """

    def __init__(self, target: Target, described: Prometheus) -> None:
        """Raises TargetError if the token's variable is not set, or if the target's `ca_file` is not there."""
        self.url = described.url.rstrip("/")
        self.selector = "{" + ",".join(f"{name}={_quoted(text)}" for name, text in described.selector.items()) + "}"
        self._token_env = described.api_key_env
        # As if it were a target of its own: the engine's key and headers are not for Prometheus.
        as_target = target.model_copy(
            update={
                "name": f"{target.name} (its Prometheus)",
                "url": self.url,
                "headers": {},
                "api_key_env": described.api_key_env,
            }
        )
        session = open_session(as_target, self.url)
        session.hooks["response"].append(_refuse_errors)
        retry = Retry(
            connect=3,
            read=False,
            status=3,
            backoff_factor=0.3,
            status_forcelist=(429, 502, 503, 504),
            raise_on_status=False,
            respect_retry_after_header=False,
        )
        self._client = PrometheusConnect(self.url, session=session, retry=retry, timeout=described.timeout_s)

    def clock(self) -> Clock:
        def ask() -> Clock:
            before_s = time.time()
            _, now_s = self._query("time()")
            after_s = time.time()
            ahead_s = float(now_s) - (before_s + after_s) / 2
            return Clock(round(float(now_s) * 1e3), ahead_s * 1e3, (after_s - before_s) / 2 * 1e3)

        return self._answer(ask)

    def last_scrapes(self) -> list[tuple[Labels, int]]:
        """(labels that Prometheus gives to a replica, when it was scraped last in ms) of each that it scrapes now."""

        def ask() -> list[tuple[Labels, int]]:
            found = self._query(f"timestamp(up{self.selector})")
            return [(series["metric"], round(float(series["value"][1]) * 1e3)) for series in found]

        return self._answer(ask)

    def interval_s(self) -> float:
        """The scrape interval: the median distance of the last scrapes, the longest of all replicas."""
        found: list[Series] = self._answer(lambda: self._query(f"up{self.selector}[{INTERVAL_WINDOW_S}s]"))
        times = ([float(at_s) for at_s, _ in series["values"][-6:]] for series in found)
        gaps = [[later - earlier for earlier, later in pairwise(of_series)] for of_series in times]
        return max((statistics.median(of_series) for of_series in gaps if of_series), default=DEFAULT_INTERVAL_S)

    def samples(self, from_ms: int, to_ms: int) -> list[Series]:
        """All raw samples of the target's series from `from_ms` (some versions: just after it) to `to_ms`."""
        query = f"{self.selector}[{to_ms - from_ms}ms]"
        return self._answer(lambda: self._query(query, {"time": f"{to_ms / 1e3:.3f}"}))

    def types(self) -> dict[str, str]:
        """Name of a metric, as on its TYPE line -> type. Of everything that Prometheus scrapes."""
        metadata = self._answer(lambda: self._client.get_metric_metadata(metric=""))
        return {entry["metric_name"]: entry["type"] for entry in metadata}

    def _query(self, query: str, params: dict[str, str] | None = None) -> Any:
        # A copy, as the client sends on what it is given. get_metric_range_data asks the same, but in whole seconds.
        return self._client.custom_query(query, params=dict(params or {}))

    def _answer(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except _Refused as refused:
            raise PrometheusError(self._refusal(refused.answer)) from None
        except (PrometheusApiClientException, requests.JSONDecodeError, KeyError, TypeError, ValueError):
            raise PrometheusError(f"what answers at {self.url} does not speak the API of Prometheus") from None
        except requests.RequestException as failure:
            raise PrometheusError(f"Prometheus at {self.url} does not answer: {reason(failure, self.url)}") from None

    def _refusal(self, response: requests.Response) -> str:
        status = response.status_code
        if status not in (401, 403):
            return f"Prometheus at {self.url} answered {answer_in_short(response)}"
        if self._token_env is None:
            advice = "name the environment variable that holds its token as api_key_env, under prometheus"
            return f"Prometheus at {self.url} answered {status}: it wants a token; {advice} in the target file"
        return f"Prometheus at {self.url} answered {status}: it refuses the token in {self._token_env}"


def _refuse_errors(response: requests.Response, **_: object) -> None:
    """Keeps the server's own words, which the client would turn into those of an exception without a status."""
    if response.status_code >= 400:
        raise _Refused(response)


def _quoted(text: str) -> str:
    """As a string of PromQL."""
    return '"' + re.sub(r'([\\"])', r"\\\1", text).replace("\n", r"\n") + '"'
