"""What is always the same on SGLang's metrics page: families of what is not simulated, and constants of a start."""

from __future__ import annotations

import os
from itertools import pairwise

from harness.sim.manners.families import Families
from harness.sim.options import SimOptions

PHASES = ("prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend")
_KEYS = ("0", "1", "2", "3", "5", "7", "10", "20", "50", "100", "200", "+Inf")
_NOT_SIMULATED = (
    "weight_memory_usage_gb",
    "startup_available_gpu_memory_gb",
    "num_grammar_queue_reqs",
    "swa_token_usage",
    "mamba_usage",
    "swa_available_tokens",
    "swa_evictable_tokens",
    "swa_used_tokens",
    "mamba_available_tokens",
    "mamba_evictable_tokens",
    "mamba_used_tokens",
    "spec_accept_length",
    "spec_accept_rate",
    "spec_cap_length",
    "spec_block_accept_length",
    "spec_num_steps",
    "spec_num_draft_tokens",
    "num_prefill_bootstrap_queue_reqs",
    "num_prefill_inflight_queue_reqs",
    "num_decode_prealloc_queue_reqs",
    "num_decode_transfer_queue_reqs",
    "num_decode_host_receive_queue_reqs",
    "num_decode_deferred_kv_release_reqs",
    "pending_prealloc_token_usage",
    "prealloc_full_token_usage",
    "prealloc_swa_token_usage",
    "utilization",
    "is_cuda_graph",
    "num_unique_running_routing_keys",
)
_STAGES = (
    "other",
    "recv_requests",
    "process_input_requests",
    "get_next_batch_to_run",
    "process_queue",
    "process_batch_result",
    "sanity_check_cache",
    "idle",
)
_IMBALANCE = [1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 15, 20, 30, 45, 60]
_SYNC_S = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
_TEXT = "Not simulated."


def add_constants(scheduler: Families, options: SimOptions) -> None:
    """Gauges that tell how it was started."""
    constants = {
        "max_total_num_tokens": options.capacity_tokens,
        "page_size": options.granularity_tokens,
        "num_pages": options.capacity_tokens // options.granularity_tokens,
        "context_len": options.context_tokens,
        "kv_cache_memory_usage_gb": options.capacity_tokens * options.hardware.kv_bytes_per_token / 2**30,
        "new_token_ratio": 0.7,
        "fwd_occupancy": float("nan"),
    }
    for name, value in constants.items():
        scheduler.gauge(name, "As it was started.").set(value)


def add_not_simulated(scheduler: Families, tokenizer: Families, process: Families) -> None:
    """Series that stay 0; families by the labels that SGLang gives them."""
    for name in _NOT_SIMULATED:
        scheduler.gauge(name, _TEXT)
    for phase in PHASES:
        scheduler.gauge("graph_memory_usage_gb", _TEXT, phase=phase)
        tokenizer.gauge("startup_cuda_graph_time_seconds", _TEXT, phase=phase)
    for phase in ("load_weight", "kv_cache_allocation", "scheduler_e2e", "tokenizer_e2e"):
        tokenizer.gauge("startup_time_seconds", _TEXT, phase=phase)
    for name in ("routing_key_running_req_count", "routing_key_all_req_count"):
        for more_than, most in pairwise(_KEYS):
            scheduler.gauge(name, _TEXT, gt=more_than, le=most)
    for name in ("num_retracted_reqs", "num_paused_reqs"):
        scheduler.gauge(name, _TEXT, pid=str(os.getpid()))
    for kind in ("scheduled", "imbalance"):
        scheduler.counter("dp_attention_tokens", _TEXT, kind=kind)
        scheduler.counter("dp_attention_pairs", _TEXT, kind=kind)
    for state in ("active", "idle"):
        scheduler.counter("dp_attention_steps", _TEXT, rank_state=state)
    for stage in _STAGES:
        scheduler.counter("scheduler_stage_seconds", _TEXT, category=stage, forward_overlap="none")
    scheduler.histogram("dp_attention_token_imbalance_ratio", _TEXT, _IMBALANCE)
    scheduler.histogram("dp_attention_sync_wait_seconds", _TEXT, _SYNC_S)
    process.gauge("routing_keys_active", _TEXT)
