"""Result files of other tools, in their shapes and with numbers of our own."""

from __future__ import annotations

from typing import Any

Content = dict[str, Any]


def vllm_bench(**changes: Any) -> Content:
    """As `vllm bench serve --save-result --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 90,99` writes."""
    content: Content = {"date": "20261130-100000", "endpoint_type": "openai-chat", "backend": "openai-chat"}
    content |= {"model_id": "m", "tokenizer_id": "m", "num_prompts": 10, "request_rate": "inf", "burstiness": 1.0}
    content |= {"max_concurrency": 4, "duration": 5.0, "completed": 9, "failed": 1}
    content |= {"total_input_tokens": 900, "total_output_tokens": 90, "request_throughput": 1.8}
    content |= {"request_goodput": None, "output_throughput": 18.0, "total_token_throughput": 198.0}
    for number, figure in enumerate(("ttft", "tpot", "itl", "e2el"), start=1):
        for name, value in (("mean", 10.0), ("median", 20.0), ("std", 1.0), ("p90", 30.0), ("p99", 40.0)):
            content[f"{name}_{figure}_ms"] = value * number
    return content | changes


def _distribution(value: float) -> Content:
    percentiles = {name: value * share for name, share in (("p50", 1), ("p90", 2), ("p95", 3), ("p99", 4))}
    return {"mean": value / 2, "median": value, "count": 9, "percentiles": percentiles}


def _by_status(value: float) -> Content:
    return {"successful": _distribution(value), "errored": _distribution(0.0), "incomplete": _distribution(0.0)}


def guidellm_benchmark(strategy: str = "constant", **metrics: Any) -> Content:
    own: Content = {"request_totals": {"successful": 9, "errored": 1, "incomplete": 2, "total": 12}}
    own |= {"requests_per_second": _by_status(4.0), "prompt_tokens_per_second": _by_status(400.0)}
    own |= {"output_tokens_per_second": _by_status(40.0), "tokens_per_second": _by_status(440.0)}
    own |= {"time_to_first_token_ms": _by_status(50.0), "time_per_output_token_ms": _by_status(12.0)}
    own |= {"inter_token_latency_ms": _by_status(8.0), "request_latency": _by_status(0.9), "request_goodput": None}
    return {"type_": "generative_benchmark", "config": {"strategy": {"type_": strategy}}, "metrics": own | metrics}


def guidellm(*benchmarks: Content, version: int = 2) -> Content:
    metadata = {"version": version, "guidellm_version": "0.8.1", "python_version": "3.12.1", "platform": "Linux"}
    return {"metadata": metadata, "config": {}, "benchmarks": list(benchmarks), "conclusions": []}


def aiperf(**changes: Any) -> Content:
    def times(value: float, unit: str = "ms") -> Content:
        return {"unit": unit, "avg": value, "p50": 2 * value, "p90": 3 * value, "p95": 4 * value, "p99": 5 * value}

    content: Content = {"schema_version": "1.4", "aiperf_version": "0.13.0", "benchmark_id": "b", "is_complete": True}
    content |= {
        "request_count": {"unit": "requests", "avg": 9.0},
        "error_request_count": {"unit": "requests", "avg": 1.0},
    }
    content |= {
        "time_to_first_token": times(10.0),
        "inter_token_latency": times(2.0),
        "request_latency": times(0.1, "sec"),
    }
    content |= {"inter_chunk_latency": times(2.5), "request_throughput": {"unit": "requests/sec", "avg": 3.0}}
    content |= {
        "output_token_throughput": {"unit": "tokens/sec", "avg": 30.0},
        "goodput": {"unit": "requests/sec", "avg": 2.5},
    }
    content |= {"overall_usage_prompt_cache_read_pct": {"unit": "%", "avg": 62.5}}
    return content | changes


def inference_perf(**successes: Any) -> Content:
    def seconds(value: float) -> Content:
        return {"mean": value, "min": 0.0, "max": 9.0, "median": 2 * value, "p90": 3 * value, "p99": 5 * value}

    latency = {
        "request_latency": seconds(0.5),
        "time_to_first_token": seconds(0.1),
        "inter_token_latency": seconds(0.01),
    }
    latency |= {"time_per_output_token": seconds(0.02), "normalized_time_per_output_token": seconds(0.03)}
    throughput = {"input_tokens_per_sec": 300.0, "output_tokens_per_sec": 30.0, "total_tokens_per_sec": 330.0}
    own: Content = {"count": 9, "latency": latency, "throughput": throughput | {"requests_per_sec": 3.0}}
    own |= {"prompt_tokens": {"total": 900.0, "cached": 450.0, "uncached": 450.0}}
    return {
        "benchmark_time_seconds": 3.0,
        "load_summary": {"count": 10},
        "successes": own | successes,
        "failures": {"count": 1},
    }
