from __future__ import annotations

from typing import Any

import pytest

from harness.errors import InputError
from harness.sim.hardware import PRESETS
from harness.sim.options import SimOptions


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"preset": "tpu"}, "There is no preset tpu: choose one of h100-8b, a100-70b-tp4, rtx4090-8b, cpu."),
        ({"max_running": 0}, "Simulated vLLM cannot have 0 running requests: give at least 1."),
        ({"step_tokens": 0}, "Simulated vLLM cannot have 0 tokens a step: give at least 1."),
        ({"manner": "llama-cpp", "slots": 0}, "Simulated llama.cpp cannot have 0 slots: give at least 1."),
        ({"manner": "mlx-lm", "entries": -1}, "Simulated mlx-lm cannot have -1 entries: give at least 0."),
        ({"cache_ram_mib": -2}, "There are no -2 MiB of host memory: give 0 (none), -1 (no limit) or more."),
        ({"time_scale": 0.0}, "Time cannot pass 0 times as fast: give a number above 0."),
        ({"jitter": 1.5}, "A jitter of 1.5 is none: give a share of a step's duration from 0 to 1."),
        (
            {"kv_tokens": 1000},
            "1000 tokens of KV cache are not a number of blocks of 16: change one of them.",
        ),
        (
            {"kv_tokens": 1024, "context_tokens": 1025},
            "A context of 1025 tokens does not fit into 1024 tokens of KV cache: vLLM would not start: give less "
            "context, or more room.",
        ),
        (
            {"manner": "sglang", "page_tokens": 64, "step_tokens": 100},
            "A step of 100 tokens is not made of whole pages of 64, as SGLang wants it: change one of them.",
        ),
    ],
)
def test_what_no_engine_could_be_started_with_is_said_in_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        SimOptions(**{"manner": "vllm", **options}).check_engine()
    assert str(refused.value) == sentence


@pytest.mark.parametrize("manner", ["vllm", "sglang", "llama-cpp", "mlx-lm"])
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_something_to_start_with(manner: Any, preset: str) -> None:
    options = SimOptions(manner=manner, preset=preset, context_tokens=8192)
    options.check_engine()
    assert options.capacity_tokens == PRESETS[preset].kv_tokens


def test_room_of_a_preset_is_cut_to_whole_blocks() -> None:
    options = SimOptions(manner="vllm", page_tokens=48)
    options.check_engine()
    assert options.capacity_tokens == PRESETS["h100-8b"].kv_tokens // 48 * 48
    assert (options.granularity_tokens, SimOptions(manner="vllm").granularity_tokens) == (48, 16)
