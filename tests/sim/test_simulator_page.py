"""The numbers of docs/simulator.md are those of the presets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.sim.hardware import PRESETS

PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"


@pytest.mark.parametrize("preset", PRESETS)
def test_the_table_of_presets_is_right(preset: str) -> None:
    line = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{preset}` |"))
    hardware = PRESETS[preset]
    cost = hardware.cost
    assert [cell.strip() for cell in line.split("|")[2:-1]] == [
        f"{cost.step_s * 1e3:.2f} ms",
        f"{cost.new_token_s * 1e6:.1f} µs",
        f"{cost.context_token_s * 1e9:,.1f} ns",
        f"{cost.attention_s * 1e9:.3f} ns",
        f"{hardware.kv_tokens:,} tokens",
        f"{hardware.kv_bytes_per_token:,}",
    ]


def test_the_measured_steps_are_beside_what_the_preset_says() -> None:
    found = re.findall(
        r"^\| ([\d,]+)(?: \(answers?\))? \| ([\d,]+) \| [\d,.]+ ms \| ([\d,.]+) ms \|$", PAGE.read_text(), re.M
    )
    assert len(found) == 10
    for texts in found:
        new, context, said_ms = (float(text.replace(",", "")) for text in texts)
        # Of answers each token has its own context; of a prompt each token also looks at those before it.
        answers = "answer" in next(line for line in PAGE.read_text().splitlines() if f"| {texts[1]} |" in line)
        pairs = context + new if answers else new * context + new * (new + 1) / 2
        expected_ms = PRESETS["cpu"].cost.duration_s(int(new), int(context), int(pairs)) * 1e3
        assert said_ms == pytest.approx(expected_ms, rel=0.01, abs=0.06)
