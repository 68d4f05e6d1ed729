"""The metrics that a run is exported as: names, kinds, and what they tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram", "info"]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric family of OpenMetrics."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    """Beyond run_id and target."""
    unit: str = ""

    @property
    def stored(self) -> tuple[str, ...]:
        """The names under which Prometheus keeps its samples."""
        suffixes = {
            "counter": ("_total",),
            "gauge": ("",),
            "histogram": ("_bucket", "_sum", "_count"),
            "info": ("_info",),
        }
        return tuple(f"{self.name}{suffix}" for suffix in suffixes[self.kind])


RUN = Family(
    "kvswarm_run", "info", "The run and its target.", ("scenario", "engine", "version", "model", "kvswarm_version")
)
REQUESTS = Family("kvswarm_requests", "counter", "Measured requests that ended, refused ones included.", ("status",))
PROMPT_TOKENS = Family(
    "kvswarm_prompt_tokens",
    "counter",
    "Prompt tokens of measured requests, by whether the engine told how many were cached: reported or unreported.",
    ("cached",),
    "tokens",
)
CACHED_TOKENS = Family(
    "kvswarm_cached_tokens",
    "counter",
    "Cached tokens, of the measured requests that report both them and their prompt tokens.",
    unit="tokens",
)
OUTPUT_TOKENS = Family("kvswarm_output_tokens", "counter", "Output tokens of measured requests.", unit="tokens")
_CACHE = ("cache",)
_BY_CACHE = "of successful measured requests: hit (half of the prompt was cached, or more), miss or unreported."
TTFT = Family("kvswarm_ttft_seconds", "histogram", f"Time to first token {_BY_CACHE}", _CACHE, "seconds")
TPOT = Family("kvswarm_tpot_seconds", "histogram", f"Time per output token {_BY_CACHE}", _CACHE, "seconds")
E2E = Family("kvswarm_e2e_seconds", "histogram", f"Time to the end of the answer {_BY_CACHE}", _CACHE, "seconds")
TIMES = {"ttft_ms": TTFT, "tpot_ms": TPOT, "e2e_ms": E2E}
"""Column of `requests` -> its family."""

_REPLICA = ("replica",)


def _tokens(meaning: str, what: str) -> Family:
    return Family(f"kvswarm_server_{meaning}", "counter", f"{what}, by the server's counter.", _REPLICA, "tokens")


SERVER = {
    "prompt_tokens": _tokens("prompt_tokens", "Prompt tokens, cached ones included"),
    "computed_prompt_tokens": _tokens("computed_prompt_tokens", "Prompt tokens that were not cached"),
    "cached_prompt_tokens": _tokens("cached_prompt_tokens", "Prompt tokens from the cache"),
    "external_cached_tokens": _tokens("external_cached_tokens", "Prompt tokens from a cache outside the engine"),
    "generated_tokens": _tokens("generated_tokens", "Output tokens"),
    "evicted_tokens": _tokens("evicted_tokens", "Tokens that the cache gave up"),
    "preemptions": Family("kvswarm_server_preemptions", "counter", "Requests put back, by the server.", _REPLICA),
    "running_requests": Family("kvswarm_server_running_requests", "gauge", "Requests that run.", _REPLICA),
    "waiting_requests": Family("kvswarm_server_waiting_requests", "gauge", "Requests that wait.", _REPLICA),
    "kv_usage": Family(
        "kvswarm_server_kv_usage_ratio", "gauge", "Share of the KV capacity in use, 0 to 1.", _REPLICA, "ratio"
    ),
}
"""Meaning of an engine's metric -> its family, whatever the engine calls it."""

FAMILIES = (RUN, REQUESTS, PROMPT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS, *TIMES.values(), *SERVER.values())
"""All of them, in the order of the export."""
