"""What SGLang tells of itself: models, arguments, sizes."""

from __future__ import annotations

from harness.sim.options import SimOptions

VERSION = "0.5.23+simulated"


def models(options: SimOptions, created_s: int) -> dict[str, object]:
    """GET /v1/models: the name again in the place of the path."""
    model = {
        "id": options.alias,
        "object": "model",
        "created": created_s,
        "owned_by": "sglang",
        "root": options.alias,
        "parent": None,
        "max_model_len": options.context_tokens,
    }
    return {"object": "list", "data": [model]}


def model_info(options: SimOptions) -> dict[str, object]:
    """GET /model_info, without what it says of embeddings."""
    return {
        "model_path": options.model_path,
        "served_model_name": options.alias,
        "tokenizer_path": options.model_path,
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "load_format": "dummy",
        "reasoning_parser": None,
        "tool_call_parser": None,
        "disaggregation_mode": "null",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
    }


def server_info(options: SimOptions) -> dict[str, object]:
    """GET /server_info: of its hundreds of arguments those that bear on caching, load and what the answers tell."""
    arguments: dict[str, object] = {
        "model_path": options.model_path,
        "tokenizer_path": options.model_path,
        "load_format": "dummy",
        "context_length": options.context_tokens,
        "dtype": "bfloat16",
        "kv_cache_dtype": "auto",
        "mem_fraction_static": 0.9,
        "max_running_requests": options.max_running,
        "max_total_tokens": options.capacity_tokens,
        "chunked_prefill_size": options.step_tokens,
        "max_prefill_tokens": 16384,
        "schedule_policy": "fcfs",
        "schedule_conservativeness": 1.0,
        "page_size": options.granularity_tokens,
        "radix_eviction_policy": "lru",
        "disable_radix_cache": not options.prefix_caching,
        "disable_overlap_schedule": True,
        "enable_mixed_chunk": False,
        "tp_size": 1,
        "dcp_size": 1,
        "pp_size": 1,
        "dp_size": 1,
        "device": "simulated",
        "served_model_name": options.alias,
        "enable_cache_report": options.report_cached,
        "stream_interval": 1,
        "enable_metrics": True,
        "enable_metrics_for_all_schedulers": False,
        "decode_log_interval": 40,
        "speculative_algorithm": None,
        "enable_hierarchical_cache": False,
        "hicache_storage_backend": None,
        "enable_lora": None,
        "enable_lmcache": False,
        "enable_flexkv": False,
        "disaggregation_mode": "null",
    }
    state = {
        **arguments,
        "effective_max_running_requests_per_dp": options.max_running,
        "last_gen_throughput": 0.0,
        "memory_usage": {"token_capacity": options.capacity_tokens, "token_capacity_swa": None},
    }
    return {
        **arguments,
        "status": "ready",
        "max_total_num_tokens": options.capacity_tokens,
        "max_req_input_len": options.context_tokens - 6,
        "kv_events": None,
        "internal_states": [state],
        "version": VERSION,
    }
