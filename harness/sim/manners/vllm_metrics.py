"""vLLM's metrics page: names, labels and buckets of release 0.32, counted from what the scheduler tells."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, GCCollector, Histogram, PlatformCollector, ProcessCollector
from prometheus_client import generate_latest as as_text

from harness.sim.driver import Driver
from harness.sim.generation import Generation
from harness.sim.manners.families import Families, add_lag
from harness.sim.manners.openai import Asked
from harness.sim.manners.vllm_cache_config import cache_config
from harness.sim.options import SimOptions
from harness.sim.scheduler import Step

TTFT_S = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40]
TTFT_S += [80, 160, 640, 2560]
TOKEN_S = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80]
REQUEST_S = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680]
STEP_TOKENS = [1, *(2**power for power in range(3, 15))]
HISTOGRAMS: dict[str, tuple[str, Sequence[float]]] = {
    "iteration_tokens_total": ("Tokens of a step: prompts computed to their end, and generated ones.", STEP_TOKENS),
    "request_params_n": ("Answers that were asked for.", [1, 2, 5, 10, 20]),
    "time_to_first_token_seconds": ("From arrival to the first token.", TTFT_S),
    "inter_token_latency_seconds": ("From one token to the next.", TOKEN_S),
    "request_time_per_output_token_seconds": ("Mean time of a request's tokens after the first.", TOKEN_S),
    "e2e_request_latency_seconds": ("From arrival to the end.", REQUEST_S),
    "request_queue_time_seconds": ("From arrival until it is first scheduled.", REQUEST_S),
    "request_inference_time_seconds": ("From when it is first scheduled to the end.", REQUEST_S),
    "request_prefill_time_seconds": ("From when it is first scheduled to the first token.", REQUEST_S),
    "request_decode_time_seconds": ("From the first token to the end.", REQUEST_S),
    "request_num_preemptions": ("How often a request lost its blocks.", [1, 2, 3, 4, 5, 10, 20]),
}
LENGTHS = {
    "request_prompt_tokens": "Tokens of a prompt.",
    "request_generation_tokens": "Tokens of an answer.",
    "request_max_num_generation_tokens": "Tokens of the longest answer to a request.",
    "request_params_max_tokens": "Tokens that an answer might have had.",
    "request_prefill_kv_computed_tokens": "Tokens of a prompt that were not in the cache.",
}
TIERS = ("device", "host", "p2p", "disk", "external_unspecified")


def length_buckets(longest: int) -> list[int]:
    """1, 2, 5, 10, 20, 50, ... as far as `longest`."""
    bounds = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
    return list(itertools.takewhile(lambda bound: bound <= longest, bounds))


class VllmPage:
    """The engine's page, and the scheduler's observer. `watch` must be called before it is read."""

    def __init__(self, options: SimOptions) -> None:
        self.registry = CollectorRegistry()
        self._prefix_caching = options.prefix_caching
        self._step_prompt_tokens = 0
        for collector in (GCCollector, PlatformCollector, ProcessCollector):
            collector(registry=self.registry)
        engine = Families(self.registry, "vllm:", {"model_name": options.alias, "engine": "0"})
        for what in ("flops", "read_bytes", "write_bytes"):
            engine.counter(f"estimated_{what}_per_gpu", "Estimated work of a GPU; not simulated.")
        self._running = engine.gauge("num_requests_running", "Requests that are being computed.")
        self._waiting = engine.gauge("num_requests_waiting", "Requests that wait to be scheduled.")
        by_reason = [
            engine.gauge("num_requests_waiting_by_reason", "Waiting requests by what they wait for.", reason=reason)
            for reason in ("capacity", "deferred")
        ]
        self._waiting_for_room = by_reason[0]
        for state in ("awake", "weights_offloaded", "discard_all"):
            gauge = engine.gauge("engine_sleep_state", "1: the engine is in this state.", sleep_state=state)
            gauge.set(state == "awake")
        self._usage = engine.gauge("kv_cache_usage_perc", "Share (0 to 1) of the blocks that requests hold.")
        self._queries = engine.counter("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.")
        self._hits = engine.counter("prefix_cache_hits", "Prompt tokens found in the prefix cache.")
        for cache, verb in itertools.product(("external_prefix", "mm"), ("queries", "hits")):
            engine.counter(f"{cache}_cache_{verb}", "Of a cache that is not simulated.")
        self._preempted = engine.counter("num_preemptions", "Requests that lost their blocks to others.")
        self._prompt_tokens = engine.counter("prompt_tokens", "Prompt tokens of requests whose prefill has ended.")
        self._computed, self._reused, _ = (
            engine.counter("prompt_tokens_by_source", "Prompt tokens by where they came from.", source=source)
            for source in ("local_compute", "local_cache_hit", "external_kv_transfer")
        )
        self._cached = engine.counter("prompt_tokens_cached", "Prompt tokens that came from a cache.")
        self._device, *_ = (
            engine.counter("prompt_tokens_cached_by_source", "Prompt tokens found at admission, by tier.", source=tier)
            for tier in TIERS
        )
        self._generated = engine.counter("generation_tokens", "Generated tokens.")
        self._ended = {
            reason: engine.counter("request_success", "Requests that ended, by reason.", finished_reason=reason)
            for reason in ("stop", "length", "abort", "error", "repetition")
        }
        door = Families(self.registry, "vllm:", {"model_name": options.alias})
        for reason in ("max_num_queued_reqs", "max_num_queued_tokens"):
            door.counter("admission_rejections", "Requests turned away from a full queue.", reason=reason)
        lengths = length_buckets(options.context_tokens)
        families = {**HISTOGRAMS, **{name: (text, lengths) for name, text in LENGTHS.items()}}
        self._seen: dict[str, Histogram] = {
            name: engine.histogram(name, text, buckets) for name, (text, buckets) in families.items()
        }
        settings = Families(self.registry, "vllm:", {"engine": "0"})
        settings.gauge("cache_config_info", "The cache's configuration.", **cache_config(options)).set(1)

    def watch(self, driver: Driver) -> None:
        """Let gauges tell how things stand with the driver's scheduler whenever the page is read."""
        scheduler = driver.scheduler
        self._running.set_function(lambda: len(scheduler.running))
        for gauge in (self._waiting, self._waiting_for_room):
            gauge.set_function(lambda: len(scheduler.waiting))
        self._usage.set_function(lambda: scheduler.kv_used_tokens / scheduler.kv_capacity_tokens)
        add_lag(self.registry, driver)

    def text(self) -> bytes:
        return as_text(self.registry)

    def arrived(self, generation: Generation) -> None:
        pass

    def admitted(self, generation: Generation) -> None:
        if self._prefix_caching:
            self._queries.inc(len(generation.prompt_ids))
            self._hits.inc(generation.cached_tokens or 0)
            self._device.inc(generation.cached_tokens or 0)

    def first_token(self, generation: Generation) -> None:
        prompt_tokens, cached_tokens = len(generation.prompt_ids), generation.cached_tokens or 0
        self._prompt_tokens.inc(prompt_tokens)
        self._computed.inc(prompt_tokens - cached_tokens)
        self._reused.inc(cached_tokens)
        self._cached.inc(cached_tokens)
        self._step_prompt_tokens += prompt_tokens - cached_tokens
        assert generation.first_token_s is not None
        self._seen["time_to_first_token_seconds"].observe(generation.first_token_s - generation.arrived_s)

    def stepped(self, step: Step) -> None:
        pass

    def preempted(self, generation: Generation) -> None:
        self._preempted.inc()

    def ended(self, generation: Generation) -> None:
        """A request that its client gave up leaves no trace here, as in vLLM."""
        assert isinstance(generation, Asked)
        admitted_s, first_token_s, ended_s = generation.admitted_s, generation.first_token_s, generation.ended_s
        if generation.end == "abort" or admitted_s is None or first_token_s is None or ended_s is None:
            return
        self._ended[generation.finish_reason].inc()
        output_tokens, decode_s = len(generation.output_ids), ended_s - first_token_s
        observed = {
            "request_prompt_tokens": len(generation.prompt_ids),
            "request_generation_tokens": output_tokens,
            "request_max_num_generation_tokens": output_tokens,
            "request_params_n": 1,
            "request_params_max_tokens": generation.asked_tokens,
            "request_time_per_output_token_seconds": decode_s / (output_tokens - 1) if output_tokens > 1 else 0.0,
            "e2e_request_latency_seconds": ended_s - generation.arrived_s,
            "request_queue_time_seconds": admitted_s - generation.arrived_s,
            "request_inference_time_seconds": ended_s - admitted_s,
            "request_prefill_time_seconds": first_token_s - admitted_s,
            "request_decode_time_seconds": decode_s,
            "request_num_preemptions": generation.preemptions,
            "request_prefill_kv_computed_tokens": len(generation.prompt_ids) - (generation.cached_tokens or 0),
        }
        for name, value in observed.items():
            self._seen[name].observe(value)

    def hears(self, served: Sequence[Generation], now_s: float) -> None:
        """After each step, what its requests got."""
        generated = 0
        observe = self._seen["inter_token_latency_seconds"].observe
        for generation in served:
            assert isinstance(generation, Asked)
            tokens, gap_s = generation.tell(now_s)
            generated += tokens
            if gap_s is not None:
                observe(gap_s)
        if generated:
            self._generated.inc(generated)
            self._seen["iteration_tokens_total"].observe(self._step_prompt_tokens + generated)
            self._step_prompt_tokens = 0
