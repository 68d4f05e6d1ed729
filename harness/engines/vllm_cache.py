"""vLLM's cache configuration, as the labels of one series of its metrics page tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.engines.openai import texts
from harness.engines.page import MetricsPage

SERIES = "vllm:cache_config_info"
"""One series for each data-parallel engine; its labels are the fields of the configuration, as Python writes them."""

_TOLD = (
    "block_size",
    "hash_block_size",
    "cache_hit_alignment_tokens",
    "num_gpu_blocks",
    "kv_cache_size_tokens",
    "cache_dtype",
    "prefix_caching_hash_algo",
    "prefix_cache_retention_interval",
    "sliding_window",
    "mamba_block_size",
    "mamba_cache_mode",
    "kv_offloading_size",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
)


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """`labels` of the first engine, without those that say None, and the number of engines."""

    labels: Mapping[str, str]
    engines: int

    @classmethod
    def on(cls, page: MetricsPage) -> CacheConfig | None:
        """None: the page has no such series."""
        # Several API servers show the series of one engine several times.
        by_engine = {labels.get("engine", ""): labels for labels in page.labels(SERIES)}
        if not by_engine:
            return None
        first = next(iter(by_engine.values()))
        return cls({name: value for name, value in first.items() if value != "None"}, len(by_engine))

    @property
    def prefix_caching(self) -> bool | None:
        told = self.labels.get("enable_prefix_caching")
        return None if told is None else told == "True"

    @property
    def kv_dtype(self) -> str | None:
        """`auto`: that of the model, which is not told."""
        return self.labels.get("cache_dtype")

    @property
    def granularity_tokens(self) -> int | None:
        names = ("cache_hit_alignment_tokens", "hash_block_size", "block_size")
        return next((int(self.labels[name]) for name in names if name in self.labels), None)

    @property
    def capacity_tokens(self) -> int | None:
        """Of all engines together.

        kv_cache_size_tokens is that of one engine, while the server adds num_gpu_blocks up over its engines. In each
        engine one block holds nothing; kv_cache_size_tokens includes it.
        """
        if "kv_cache_size_tokens" in self.labels:
            return int(self.labels["kv_cache_size_tokens"]) * self.engines
        if "num_gpu_blocks" in self.labels and "block_size" in self.labels:
            return (int(self.labels["num_gpu_blocks"]) - self.engines) * int(self.labels["block_size"])
        return None

    @property
    def details(self) -> dict[str, str]:
        """The fields that bear on caching, the number of engines, and what the capacity comes from."""
        if "kv_cache_size_tokens" in self.labels:
            capacity = "kv_cache_size_tokens of each engine; one block of it holds nothing"
        else:
            capacity = "num_gpu_blocks x block_size; too high for hybrid models, too low with context parallelism"
        told = texts({name: self.labels.get(name) for name in _TOLD})
        return {**told, "engines": str(self.engines), "capacity": capacity}


def has_external_tier(page: MetricsPage) -> bool:
    """Whether a KV connector was ever asked for tokens, or offloading to host memory is on."""
    asked = page.total("vllm:external_prefix_cache_queries_total") or 0
    sizes = (labels.get("kv_offloading_size", "None") for labels in page.labels(SERIES))
    return asked > 0 or any(size not in ("None", "0", "0.0") for size in sizes)
