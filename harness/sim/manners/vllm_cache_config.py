"""vLLM's cache configuration, as the labels of one series of its metrics page tell it."""

from __future__ import annotations

from harness.sim.options import SimOptions

_DEFAULTS = {
    "_block_size_resolved": True,
    "cache_dtype": "auto",
    "cache_hit_alignment_tokens": None,
    "enable_mamba_shared_prefix_checkpoint": False,
    "gpu_memory_utilization": 0.92,
    "hash_block_size": None,
    "is_attention_free": False,
    "kv_cache_dtype_skip_layers": [],
    "kv_cache_layout": None,
    "kv_cache_memory_bytes": None,
    "kv_offloading_backend": "native",
    "kv_offloading_size": None,
    "kv_sharing_fast_prefill": False,
    "mamba_block_size": None,
    "mamba_cache_dtype": "auto",
    "mamba_cache_mode": "none",
    "mamba_page_size_padded": None,
    "mamba_ssm_cache_dtype": "float32",
    "num_cpu_blocks": None,
    "prefix_cache_retention_interval": 0,
    "prefix_caching_hash_algo": "sha256",
    "prefix_match_unit": None,
    "replayssm_buffer_len": 16,
    "skip_page_size_padded": None,
    "sliding_window": None,
    "swa_bounded_replay": True,
    "use_kda_recoverssm": False,
    "use_replayssm": False,
    "user_specified_block_size": True,
}
"""Of a model with plain attention, in release 0.32."""


def cache_config(options: SimOptions) -> dict[str, str]:
    """Label -> value, as Python writes it."""
    blocks = options.capacity_tokens // options.granularity_tokens
    values = {
        **_DEFAULTS,
        "block_size": options.granularity_tokens,
        "effective_attention_block_size": options.granularity_tokens,
        "enable_prefix_caching": options.prefix_caching,
        "kv_cache_max_concurrency": options.capacity_tokens / options.context_tokens,
        "kv_cache_size_tokens": options.capacity_tokens,
        "num_gpu_blocks": blocks,
        "num_gpu_blocks_override": blocks,
    }
    return {name: str(value) for name, value in values.items()}
