"""SGLang's OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from harness.engines.base import Identity, Metric, Need, ResetOutcome
from harness.engines.control import Control, answer_in_short
from harness.engines.identity import NO_BUILD, VAGUE, build_of, explained
from harness.engines.openai import ModelList, texts
from harness.engines.replicas import over_replicas, replica_details
from harness.engines.reset import insist
from harness.engines.tokenizing import TokenizingEngine
from harness.errors import TargetError

_OTHERS = {"vllm", "llamacpp"}

METRICS = (
    Metric(
        "prompt_tokens",
        ("sglang:prompt_tokens_total",),
        "counter",
        "prompt tokens, with those from the cache, counted when a request finishes",
        absent_is_zero=True,
    ),
    Metric(
        "cached_prompt_tokens",
        ("sglang:cached_tokens_total",),
        "counter",
        "prompt tokens from the cache (device, host or storage), counted when a request finishes",
        absent_is_zero=True,
    ),
    Metric(
        "generated_tokens",
        ("sglang:generation_tokens_total",),
        "counter",
        "generated tokens, counted when a request finishes",
        absent_is_zero=True,
    ),
    Metric(
        "running_requests",
        ("sglang:num_running_reqs",),
        "gauge",
        "requests in the running batch, as of the last prefill or the last log line: it can be old",
    ),
    Metric("waiting_requests", ("sglang:num_queue_reqs",), "gauge", "queued requests, as old as the running ones"),
    Metric(
        "kv_usage",
        ("sglang:token_usage",),
        "gauge",
        "share (0 to 1) of a scheduler's KV pool in use; what is cached and may be evicted does not count, and it can "
        "be old",
    ),
    Metric(
        "preemptions",
        ("sglang:num_retracted_requests_total",),
        "counter",
        "requests that were put back into the queue for lack of room; always 0 in releases without this counter",
        absent_is_zero=True,
    ),
    Metric(
        "evicted_tokens",
        ("sglang:evicted_tokens_total",),
        "counter",
        "cached tokens that were evicted from the device; always 0 in releases before 0.5.6, which lack it",
        absent_is_zero=True,
    ),
)
ADVICE: Mapping[Need, str] = MappingProxyType(
    {
        "caching": "start SGLang without --disable-radix-cache",
        "cached_tokens": "start SGLang with --enable-cache-report",
        "metrics": "start SGLang with --enable-metrics",
        "reset": "let no other traffic reach SGLang, which empties its cache only while it is idle",
    }
)
_TOLD = [
    "page_size",
    "disable_radix_cache",
    "radix_eviction_policy",
    "schedule_policy",
    "chunked_prefill_size",
    "max_prefill_tokens",
    "enable_mixed_chunk",
    "kv_cache_dtype",
    "dtype",
    "tp_size",
    "dp_size",
    "dcp_size",
    "mem_fraction_static",
    "speculative_algorithm",
    "disaggregation_mode",
    "enable_lora",
    "enable_hierarchical_cache",
    "enable_lmcache",
    "enable_flexkv",
    "enable_cache_report",
    "enable_metrics",
    "enable_metrics_for_all_schedulers",
]
_TOLD_OF_HICACHE = ["hicache_ratio", "hicache_size", "hicache_write_policy", "hicache_storage_backend"]
_FLUSH_WAIT_S = 5
"""How long the server itself waits to be idle; releases before spring 2026 do not wait."""


class SglangEngine(TokenizingEngine):
    """Its cache is a radix tree over token ids, rounded down to whole pages."""

    name: str = "sglang"
    metrics: tuple[Metric, ...] = METRICS
    advice: Mapping[Need, str] = ADVICE
    salt_fields: tuple[str, ...] = ("cache_salt", "extra_key")

    @classmethod
    def answers(cls, control: Control, listed: ModelList) -> bool:
        """Its list says so; behind a gateway that rewrites the list, GET /server_info has SGLang's own arguments."""
        if "sglang" in listed.owners:
            return True
        if listed.owners & _OTHERS:
            return False
        try:
            return _is_server_info(control.get_object(f"{control.target.server_root}/server_info"))
        except TargetError:
            return False

    def identify(self) -> Identity:
        served = self.served()
        info, problem = self._server_info()
        unknown: dict[str, str] = {}
        tokenizer, template = self.fingerprints(unknown)
        version = info.get("version")
        if version and not build_of(version):
            unknown["build"] = NO_BUILD
        ranks = info.get("dp_size") or 1
        pool, page_size, states = info.get("max_total_num_tokens"), info.get("page_size"), info.get("internal_states")
        off = info.get("disable_radix_cache")
        details = {
            **served.details,
            **texts({name: info.get(name) for name in _TOLD}),
            **replica_details(self.target),
        }
        if info.get("enable_hierarchical_cache"):
            details |= texts({name: info.get(name) for name in _TOLD_OF_HICACHE})
        identity = Identity(
            engine=self.name,
            model=self.model,
            version=version,
            build=build_of(version),
            # Its list of models has only the name again.
            model_path=info.get("model_path"),
            context_tokens=served.context_tokens or info.get("context_length"),
            capacity_tokens=pool * ranks if pool else None,
            granularity_tokens=page_size * (info.get("dcp_size") or 1) if page_size else None,
            slots=_slots(states[0], ranks) if states else None,
            prefix_caching=None if off is None else not off,
            kv_dtype=_kv_dtype(info),
            template_fingerprint=template,
            tokenizer_fingerprint=tokenizer,
            adapter=served.adapter,
            details=details,
            unknown=unknown,
        )
        reason = f"SGLang tells it in GET /server_info, but {problem}" if problem else "this release does not tell it"
        return explained(identity, reason)

    def is_idle(self, metrics: Mapping[str, float]) -> bool | None:
        """Its gauges are refreshed now and then only: they show neither that it is busy nor that it is not."""
        return None

    def reset_cache(self) -> ResetOutcome:
        """POST /flush_cache until it succeeds; refused as long as requests run or wait."""
        url = f"{self.target.server_root}/flush_cache?timeout={_FLUSH_WAIT_S}"
        response = insist(lambda: self.control.post(url, {}), lambda answer: answer.status_code == 400)
        if response.status_code == 400:
            message = "SGLang refused to empty its cache, as it does while requests run; wait until they have ended"
            return ResetOutcome(complete=False, message=message)
        if response.status_code in (404, 405):
            message = "nothing was emptied: what stands before SGLang does not let POST /flush_cache through"
            return ResetOutcome(complete=False, message=message)
        if response.status_code != 200:
            raise TargetError(f"the cache could not be emptied: POST {url} answered {answer_in_short(response)}")
        info, problem = self._server_info()
        left = _left(info) if info else f"what other stores keep is not known, as {problem}"
        if left:
            return ResetOutcome(complete=False, message=f"SGLang emptied its cache, but {left}")
        tiers = " on device and host" if info.get("enable_hierarchical_cache") else ""
        return over_replicas(self.target, ResetOutcome(complete=True, message=f"SGLang emptied its cache{tiers}"))

    def _server_info(self) -> tuple[Mapping[str, Any], str]:
        """The server's arguments and state, or nothing and why."""
        root, problem = self.target.server_root, ""
        for path in ("server_info", "get_server_info"):  # the second is the name in releases of 2025
            try:
                info = self.control.get_object(f"{root}/{path}")
            except TargetError as error:
                problem = problem or str(error)
                continue
            if _is_server_info(info):
                return info, ""
            problem = problem or f"GET {root}/{path} has no page_size"
        return {}, problem


def _is_server_info(answer: Mapping[str, Any]) -> bool:
    """vLLM has a /server_info too, without these."""
    return "page_size" in answer and "disable_radix_cache" in answer


def _kv_dtype(info: Mapping[str, Any]) -> str | None:
    """`auto` means the type of the model, which is told unless it is `auto` again."""
    told = info.get("kv_cache_dtype")
    return info.get("dtype", VAGUE) if told == VAGUE else told


def _slots(state: Mapping[str, Any], ranks: int) -> int | None:
    """Requests that may run at once. Releases of 2025 tell it under another name."""
    names = ("effective_max_running_requests_per_dp", "max_running_requests")
    most = next((state[name] for name in names if state.get(name)), None)
    return None if most is None else most * ranks


def _left(info: Mapping[str, Any]) -> str:
    """What a flush does not empty, as a clause; empty: nothing."""
    if info.get("enable_hierarchical_cache") and info.get("hicache_storage_backend"):
        backend = info["hicache_storage_backend"]
        return (
            f"the storage of its hierarchical cache ({backend}) stays: POST /hicache/storage-backend/clear empties it"
        )
    if info.get("enable_lmcache") or info.get("enable_flexkv"):
        return "what LMCache or FlexKV keeps outside of it stays"
    ranks = info.get("dp_size") or 1
    return f"it answers for the first of its {ranks} data-parallel ranks alone" if ranks > 1 else ""
