"""vLLM's OpenAI-compatible server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import requests

from harness.engines.base import Identity, Metric, Need, ResetOutcome
from harness.engines.control import Control, answer_in_short, json_object
from harness.engines.identity import NO_BUILD, VAGUE, build_of, explained
from harness.engines.openai import ModelList
from harness.engines.page import MetricsPage, read_page
from harness.engines.replicas import over_replicas, replica_details
from harness.engines.reset import insist
from harness.engines.tokenizing import TokenizingEngine
from harness.engines.vllm_cache import SERIES, CacheConfig, has_external_tier
from harness.errors import TargetError

_OTHERS = {"sglang", "llamacpp"}
_RELEASE = re.compile(r"\d+\.\d+\S*")
_SALT = re.compile(r"[^@/\\\0]{1,128}")

METRICS = (
    Metric(
        "prompt_tokens",
        ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
        "counter",
        "prompt tokens looked up in the prefix cache, counted when a request is admitted; none with caching off, and "
        "once more at each attempt to schedule it in releases before 0.27",
    ),
    Metric(
        "cached_prompt_tokens",
        ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
        "counter",
        "prompt tokens found there, without those of an external tier; counted at the same moment",
    ),
    Metric(
        "external_cached_tokens",
        ("vllm:external_prefix_cache_hits_total",),
        "counter",
        "prompt tokens that a KV connector supplied (offloading, LMCache), after the prefix cache was asked",
    ),
    Metric("generated_tokens", ("vllm:generation_tokens_total",), "counter", "generated tokens"),
    Metric("running_requests", ("vllm:num_requests_running",), "gauge", "requests in the running batch"),
    Metric("waiting_requests", ("vllm:num_requests_waiting",), "gauge", "requests that wait to be scheduled"),
    Metric(
        "kv_usage",
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        "gauge",
        "share (0 to 1) of an engine's blocks that running requests hold; what is cached and free to be reused does "
        "not count",
    ),
    Metric("preemptions", ("vllm:num_preemptions_total",), "counter", "requests that lost their blocks to others"),
)
ADVICE: Mapping[Need, str] = MappingProxyType(
    {
        "caching": "start vLLM without --no-enable-prefix-caching",
        "cached_tokens": "start vLLM with --enable-prompt-tokens-details",
        "metrics": "start vLLM without --disable-log-stats, and let /metrics through to kvswarm",
        "reset": "start vLLM with VLLM_SERVER_DEV_MODE=1 in its environment",
    }
)
_UNTOLD = {
    "slots": "vLLM does not tell --max-num-seqs",
    "max_num_batched_tokens": "vLLM does not tell --max-num-batched-tokens, the most that one step computes",
    "speculative_config": "vLLM does not tell --speculative-config; with EAGLE or MTP a hit is a block shorter",
    "kv_transfer_config": "vLLM does not tell --kv-transfer-config, the KV connector in use",
    "enable_prompt_tokens_details": "vLLM does not tell --enable-prompt-tokens-details; its answers show it",
}


class VllmEngine(TokenizingEngine):
    """Its cache is a pool of blocks: leading full blocks of a prompt are found by their chained hashes."""

    name: str = "vllm"
    metrics: tuple[Metric, ...] = METRICS
    advice: Mapping[Need, str] = ADVICE

    @classmethod
    def answers(cls, control: Control, listed: ModelList) -> bool:
        """Its list says so; behind a gateway that rewrites the list, GET /version has a release and nothing else."""
        if "vllm" in listed.owners:
            return True
        if listed.owners & _OTHERS:
            return False
        try:
            answer = control.get_object(f"{control.target.server_root}/version")
        except TargetError:
            return False
        return set(answer) == {"version"} and _RELEASE.fullmatch(str(answer["version"])) is not None

    def identify(self) -> Identity:
        served = self.served()
        unknown = dict(_UNTOLD)
        version = self._version(unknown)
        config = self._cache_config(unknown)
        if version and not build_of(version):
            unknown["build"] = NO_BUILD
        tokenizer, template = self.fingerprints(unknown)
        identity = Identity(
            engine=self.name,
            model=self.model,
            version=version,
            build=build_of(version),
            model_path=served.root,
            context_tokens=served.context_tokens,
            capacity_tokens=config.capacity_tokens if config else None,
            granularity_tokens=config.granularity_tokens if config else None,
            prefix_caching=config.prefix_caching if config else None,
            kv_dtype=self._kv_dtype(config) if config else None,
            template_fingerprint=template,
            tokenizer_fingerprint=tokenizer,
            adapter=served.adapter,
            details={**served.details, **(config.details if config else {}), **replica_details(self.target)},
            unknown=unknown,
        )
        return explained(identity, "this release does not tell it, or what stands before it does not let it through")

    def _payload(
        self, prompt: Mapping[str, Any], output_tokens: int, cache_salt: str | None, slot: int | None
    ) -> dict[str, Any]:
        if cache_salt is not None and _SALT.fullmatch(cache_salt) is None:
            raise ValueError(f"vLLM takes a cache salt of 1 to 128 characters without @, / and \\, not {cache_salt!r}")
        return super()._payload(prompt, output_tokens, cache_salt, slot)

    def reset_cache(self) -> ResetOutcome:
        """POST /reset_prefix_cache until it succeeds; refused as long as a request holds blocks."""
        page, problem = self._page()
        has_tier = page is not None and has_external_tier(page)
        url = f"{self.target.server_root}/reset_prefix_cache{'?reset_external=true' if has_tier else ''}"
        response = insist(lambda: self.control.post(url, {}), lambda answer: _success(answer) is False)
        if response.status_code in (404, 405):
            return ResetOutcome(complete=False, message=f"nothing was emptied: {ADVICE['reset']} to allow it")
        if response.status_code != 200:
            raise TargetError(f"the cache could not be emptied: POST {url} answered {answer_in_short(response)}")
        success = _success(response)
        if success is None:
            message = "vLLM was asked to empty its prefix cache, and releases before 0.26 do not say whether they did"
            return ResetOutcome(complete=False, message=message)
        if not success:
            message = (
                "vLLM refused to empty its prefix cache, as it does while requests run; wait until they have ended"
            )
            return ResetOutcome(complete=False, message=message)
        if has_tier:
            message = (
                "vLLM emptied its prefix cache, and asked its KV connector to empty its own; not every connector does, "
                "and vLLM does not tell"
            )
            return ResetOutcome(complete=False, message=message)
        if page is None:
            message = f"vLLM emptied its prefix cache; whether a KV connector keeps more is not known, as {problem}"
            return ResetOutcome(complete=False, message=message)
        return over_replicas(self.target, ResetOutcome(complete=True, message="vLLM emptied its prefix cache"))

    def _version(self, unknown: dict[str, str]) -> str | None:
        url = f"{self.target.server_root}/version"
        try:
            version = self.control.get_object(url).get("version")
        except TargetError as problem:
            unknown["version"] = str(problem)
            return None
        return version if isinstance(version, str) else None

    def _cache_config(self, unknown: dict[str, str]) -> CacheConfig | None:
        page, problem = self._page()
        config = CacheConfig.on(page) if page else None
        if config is None:
            reason = problem or f"that has no {SERIES}: {ADVICE['metrics']}"
            told_there = ("capacity_tokens", "granularity_tokens", "prefix_caching", "kv_dtype")
            unknown.update(dict.fromkeys(told_there, f"vLLM tells it on its metrics page alone, but {reason}"))
        return config

    def _kv_dtype(self, config: CacheConfig) -> str | None:
        """`auto` means the type of the model. A server in development mode tells that in GET /server_info; where it
        does not, it stays `auto`."""
        if config.kv_dtype != VAGUE:
            return config.kv_dtype
        try:
            info = self.control.get_object(f"{self.target.server_root}/server_info?config_format=json")
        except TargetError:
            return VAGUE
        of_server = info.get("vllm_config")
        of_model = of_server.get("model_config") if isinstance(of_server, dict) else None
        told = of_model.get("dtype") if isinstance(of_model, dict) else None
        return told.removeprefix("torch.") if isinstance(told, str) else VAGUE

    def _page(self) -> tuple[MetricsPage | None, str]:
        """The metrics page, or why there is none."""
        try:
            return read_page(self.control), ""
        except TargetError as problem:
            return None, str(problem)


def _success(response: requests.Response) -> bool | None:
    """What the answer says of it; None: nothing, or the status says enough."""
    if response.status_code != 200:
        return None
    try:
        answer = json_object(response)
    except TargetError:
        return None
    return bool(answer["success"]) if "success" in answer else None
