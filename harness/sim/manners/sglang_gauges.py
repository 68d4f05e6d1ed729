"""SGLang's gauges of load: set at each prefill batch and now and then while it decodes, old in between."""

from __future__ import annotations

from harness.sim.driver import Driver
from harness.sim.manners.families import Families
from harness.sim.scheduler import Step

DECODE_STEPS = 40
"""A log line of decoding, and with it new gauges, each so many steps since the start or the last flush."""
IDLE_S = 30.0
"""How often they are set while there is nothing to do."""


class LoadGauges:
    """`watch` must be called before anything else."""

    def __init__(self, scheduler: Families) -> None:
        self._running = scheduler.gauge("num_running_reqs", "Requests that were decoding.")
        self._queue = scheduler.gauge("num_queue_reqs", "Requests that waited.")
        self._throughput = scheduler.gauge("gen_throughput", "Generated tokens a second since the log line before.")
        self._hit_rate = scheduler.gauge("cache_hit_rate", "Share from the cache of the latest prefill batch.")
        self._lengths = scheduler.gauge("decode_sum_seq_lens", "Tokens of all sequences at the latest log line.")
        self._usage = scheduler.gauge("token_usage", "Share of the pool in use, to two digits.")
        self._full_usage = scheduler.gauge("full_token_usage", "Share of the pool in use.")
        self._used = scheduler.gauge("num_used_tokens", "Tokens of the pool in use.")
        self._kv_available = scheduler.gauge("kv_available_tokens", "Free tokens of the pool.")
        self._kv_evictable = scheduler.gauge("kv_evictable_tokens", "Cached tokens that may be dropped.")
        self._kv_used = scheduler.gauge("kv_used_tokens", "Tokens of the pool in use.")
        self.flushed()
        self._idle_refresh_s = 0.0

    def watch(self, driver: Driver) -> None:
        self._driver = driver

    def flushed(self) -> None:
        """The cache was emptied: log lines are counted anew."""
        self._decode_steps = self._tokens = 0
        self._line_s = 0.0

    def stepped(self, step: Step) -> None:
        if step.prompt_tokens:
            known = step.cached_tokens + step.prompt_tokens
            self._hit_rate.set(step.cached_tokens / known)
            running = self._driver.scheduler.running
            self._running.set(sum(1 for generation in running if generation.first_token_s is not None))
            self._set_room()
        if not step.decoding:
            return
        self._decode_steps += 1
        self._tokens += step.decoding
        if self._decode_steps % DECODE_STEPS == 0:
            elapsed_s = step.ended_s - self._line_s
            self._throughput.set(self._tokens / elapsed_s if elapsed_s > 0 else 0.0)
            self._lengths.set(step.context_tokens + step.decoding)
            self._running.set(len(self._driver.scheduler.running))
            self._set_room()
            self._line_s, self._tokens = step.ended_s, 0

    def refresh_if_idle(self) -> None:
        """When the page is read."""
        scheduler, now_s = self._driver.scheduler, self._driver.now_s()
        if scheduler.running or scheduler.waiting or now_s < self._idle_refresh_s + IDLE_S:
            return
        self._idle_refresh_s = now_s
        self._running.set(0)
        self._throughput.set(0)
        self._set_room()

    def _set_room(self) -> None:
        scheduler = self._driver.scheduler
        used, evictable, all_of_it = (
            scheduler.kv_used_tokens,
            scheduler.kv_evictable_tokens,
            scheduler.kv_capacity_tokens,
        )
        self._queue.set(len(scheduler.waiting))
        self._usage.set(round(used / all_of_it, 2))
        self._full_usage.set(used / all_of_it)
        for gauge in (self._used, self._kv_used):
            gauge.set(used)
        self._kv_evictable.set(evictable)
        self._kv_available.set(all_of_it - used - evictable)
