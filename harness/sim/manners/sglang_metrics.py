"""SGLang's metrics page: names, labels and buckets of release 0.5.23, counted from what the scheduler tells."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric

from harness.sim.driver import Driver
from harness.sim.generation import Generation
from harness.sim.manners.families import Families, add_lag
from harness.sim.manners.openai import Asked
from harness.sim.manners.sglang_families import add_constants, add_not_simulated
from harness.sim.manners.sglang_gauges import LoadGauges
from harness.sim.manners.sglang_usage import said_tokens
from harness.sim.options import SimOptions
from harness.sim.scheduler import Step

TTFT_S = [0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400]
REQUEST_S = [*TTFT_S, 600, 1200, 1800, 2400]
TOKEN_S = [0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1, 0.2, 0.4, 0.6, 0.8]
TOKEN_S += [1, 2, 4, 6, 8]
QUEUE_S = [0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 15, 20, *range(30, 101, 10)]
QUEUE_S += [*range(200, 1001, 100), *range(1200, 2001, 200), 2500, 3000]
STAGE_S = [0.001 * 1.62**power for power in range(30)]
EVICTION_S = [*(number / 1000 for number in range(1, 11)), 0.02, 0.03, 0.04, 0.05, 0.1, 0.2, 0.5, 1]
LENGTHS = [100, 300, 500, 700, 1000, 1500, *range(2000, 10001, 1000), *range(12500, 30001, 2500)]
LENGTHS += [35000, 40000, 60000, 80000, 100000, 200000, 300000, 400000, 600000, 800000, 1000000, 1100000]
_SCHEDULER = {"engine_type": "unified", "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": "0"}
_CACHE = {"cache_type": "UnifiedRadixCache", "dp_rank": "0", "pp_rank": "0", "tp_rank": "0"}


class SglangPage:
    """The engine's page, and the scheduler's observer. `watch` must be called before anything else.

    Several processes of the real server write it: there are no series that tell when they were created, and what never
    happened is not there.
    """

    def __init__(self, options: SimOptions) -> None:
        self.registry = CollectorRegistry()
        model = {"model_name": options.alias}
        self.process = Families(self.registry, "sglang:")
        self._scheduler = Families(self.registry, "sglang:", {**_SCHEDULER, **model})
        self._tokenizer = Families(self.registry, "sglang:", {"engine_type": "unified", **model})
        self._cache = Families(self.registry, "sglang:", _CACHE)
        add_constants(self._scheduler, options)
        add_not_simulated(self._scheduler, self._tokenizer, self.process)
        self._gauges = LoadGauges(self._scheduler)
        self._evicted_tokens = 0
        self._busy_s = self._idle_s = self._cpu_s = 0.0
        self._itl = self._tokenizer.histogram("inter_token_latency_seconds", "From one token to the next.", TOKEN_S)

    def watch(self, driver: Driver) -> None:
        self._driver = driver
        self._gauges.watch(driver)
        add_lag(self.registry, driver)

    def text(self) -> bytes:
        self._gauges.refresh_if_idle()
        idle_s, cpu_s = max(0.0, self._driver.now_s() - self._busy_s), time.process_time()
        self._scheduler.counter("scheduler_idle_seconds", "Without work.").inc(max(0.0, idle_s - self._idle_s))
        text = "Time of the processor."
        self._scheduler.counter("scheduler_process_cpu_seconds", text).inc(cpu_s - self._cpu_s)
        for component in ("detokenizer", "tokenizer"):
            self.process.counter("process_cpu_seconds", text, component=component)
        self._idle_s, self._cpu_s = max(idle_s, self._idle_s), cpu_s
        return generate_latest(_OfSeveralProcesses(self.registry))

    def flushed(self) -> None:
        """The cache was emptied."""
        self._gauges.flushed()

    def arrived(self, generation: Generation) -> None:
        pass

    def admitted(self, generation: Generation) -> None:
        assert generation.admitted_s is not None
        queue_s = generation.admitted_s - generation.arrived_s
        self._scheduler.histogram("queue_time_seconds", "From arrival to admission.", QUEUE_S).observe(queue_s)
        self._stage("request_process", 0.0)

    def first_token(self, generation: Generation) -> None:
        assert isinstance(generation, Asked)
        assert generation.admitted_s is not None
        assert generation.first_token_s is not None
        cached_tokens = generation.cached_tokens or 0
        self._stage("prefill_forward", generation.first_token_s - generation.admitted_s)
        modes = {"input": len(generation.prompt_ids) - cached_tokens, "device_hit": cached_tokens}
        for mode, tokens in {**modes, "host_hit": 0, "storage_hit": 0}.items():
            text = "Prompt tokens by where they came from."
            self._scheduler.counter("prefill_effective_tokens", text, mode=mode).inc(tokens)
        ttft_s = generation.first_token_s - generation.arrived_s
        self._of_stream("time_to_first_token_seconds", "From arrival to the first token.", TTFT_S, generation, ttft_s)

    def stepped(self, step: Step) -> None:
        self._busy_s += step.duration_s
        labels = {"category": "run_batch", "forward_overlap": "none"}
        self._scheduler.counter("scheduler_stage_seconds", "Time of the steps.", **labels).inc(step.duration_s)
        modes = {"prefill_compute": step.prompt_tokens, "prefill_cache": step.cached_tokens, "decode": step.decoding}
        for mode, tokens in modes.items():
            if tokens:
                self._scheduler.counter("realtime_tokens", "Tokens by what was done with them.", mode=mode).inc(tokens)
        passes = "prefill_none" if step.prompt_tokens else "decode_none"
        self._scheduler.counter("cuda_graph_passes", "Steps by their kind.", mode=passes).inc()
        self._gauges.stepped(step)

    def preempted(self, generation: Generation) -> None:
        self._scheduler.counter("num_retracted_requests", "Requests put back into the queue.").inc()

    def ended(self, generation: Generation) -> None:
        assert isinstance(generation, Asked)
        if generation.end == "abort":
            self._tokenizer.counter("num_aborted_requests", "Requests that were given up.").inc()
        admitted_s, first_token_s, ended_s = generation.admitted_s, generation.first_token_s, generation.ended_s
        if admitted_s is None or ended_s is None:
            return
        prompt_tokens, cached_tokens = len(generation.prompt_ids), generation.cached_tokens or 0
        output_tokens = said_tokens(generation)
        streaming = {"is_streaming": str(generation.streams).lower()}
        counter, histogram = self._tokenizer.counter, self._tokenizer.histogram
        counter("prompt_tokens", "Prompt tokens of requests that ended.", **streaming).inc(prompt_tokens)
        counter("generation_tokens", "Generated tokens of requests that ended.", **streaming).inc(output_tokens)
        counter("num_requests", "Requests that ended.", **streaming).inc()
        if cached_tokens:
            text = "Prompt tokens from the cache, of requests that ended."
            counter("cached_tokens", text, cache_source="device").inc(cached_tokens)
        histogram("prompt_tokens_histogram", "Tokens of a prompt.", LENGTHS).observe(prompt_tokens)
        text = "Tokens of a prompt that were not in the cache."
        histogram("uncached_prompt_tokens_histogram", text, LENGTHS).observe(prompt_tokens - cached_tokens)
        histogram("generation_tokens_histogram", "Tokens of an answer.", LENGTHS).observe(output_tokens)
        e2e_s = ended_s - generation.arrived_s
        self._of_stream("e2e_request_latency_seconds", "From arrival to the end.", REQUEST_S, generation, e2e_s)
        if first_token_s is not None and output_tokens > 1:
            tpot_s = (ended_s - first_token_s) / (output_tokens - 1)
            text = "Mean time of a request's tokens after the first."
            self._of_stream("request_time_per_output_token_seconds", text, TOKEN_S, generation, tpot_s)

    def hears(self, served: Sequence[Generation], now_s: float) -> None:
        """After each step, what its requests got."""
        for generation in served:
            assert isinstance(generation, Asked)
            if generation.streams:
                _, gap_s = generation.tell(now_s)
                if gap_s is not None:
                    self._itl.observe(gap_s)
        evicted_tokens = self._driver.scheduler.evicted_tokens
        if evicted_tokens > self._evicted_tokens:
            text = "Cached tokens that were dropped."
            self._cache.counter("evicted_tokens", text).inc(evicted_tokens - self._evicted_tokens)
            self._cache.histogram("eviction_duration_seconds", "Not simulated.", EVICTION_S).observe(0)
            self._evicted_tokens = evicted_tokens

    def _of_stream(self, name: str, text: str, buckets: Sequence[float], asked: Asked, value: float) -> None:
        streaming = str(asked.streams).lower()
        self._tokenizer.histogram(name, text, buckets, is_streaming=streaming).observe(value)

    def _stage(self, stage: str, duration_s: float) -> None:
        histogram = self._scheduler.histogram("per_stage_req_latency_seconds", "By stage.", STAGE_S, stage=stage)
        histogram.observe(duration_s)


class _OfSeveralProcesses:
    """The registry as prometheus_client shows what several processes wrote."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            if metric.samples:
                yield metric
