from __future__ import annotations

import pytest

from harness.sim.hardware import LLAMA_8B, LLAMA_70B, PRESETS, StepCost


def test_a_step_costs_the_sum_of_what_it_does() -> None:
    cost = StepCost(step_s=1.0, new_token_s=0.1, context_token_s=0.01, attention_s=0.001)
    assert cost.duration_s(new_tokens=5, context_tokens=7, pairs=11) == pytest.approx(1.581)


def test_kv_cache_is_as_large_as_the_models_are_known_to_have_it() -> None:
    assert (LLAMA_8B.kv_bytes_per_token, LLAMA_70B.kv_bytes_per_token) == (128 * 1024, 320 * 1024)


def test_h100_by_hand() -> None:
    h100 = PRESETS["h100-8b"]
    # 16.06 GB of weights at 80 % of 3.35 TB/s, and 0.8 ms; 13.96 GFLOP a token at 60 % of 989.4 TFLOP/s.
    assert h100.cost.step_s == pytest.approx(0.0008 + 16.06e9 / 2.68e12)
    assert h100.cost.new_token_s == pytest.approx(13.96e9 / 593.64e12, rel=1e-3)
    assert h100.cost.context_token_s == pytest.approx(131072 / 2.68e12)
    assert h100.cost.attention_s == pytest.approx(4 * 4096 * 32 / 593.64e12)
    # 90 % of 80 GiB without the weights, in whole thousands of 1,024.
    assert h100.kv_tokens == 456 * 1024


def test_four_cards_share_the_work_and_pay_for_their_sums() -> None:
    a100 = PRESETS["a100-70b-tp4"]
    weights_s = 141.1e9 / 4 / (0.8 * 2.039e12)
    assert a100.cost.step_s == pytest.approx(0.0008 + weights_s + 160 * 10e-6)
    compute_s = 2 * (70.55e9 - 2 * 128256 * 8192) / 4 / (0.6 * 312e12)
    exchange_s = 160 * 1.5 * 2 * 8192 / (0.65 * 300e9)
    assert a100.cost.new_token_s == pytest.approx(compute_s + exchange_s)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_coefficient_counts(preset: str) -> None:
    cost = PRESETS[preset].cost
    assert min(cost.step_s, cost.new_token_s, cost.context_token_s, cost.attention_s) > 0
    assert PRESETS[preset].kv_tokens > 8192
