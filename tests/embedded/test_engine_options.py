"""What vLLM, SGLang and mlx-lm are started with. Whether they take it, tests/contract shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.embedded.engine_options import (
    KINDS,
    STAND_INS,
    EngineOptions,
    MlxLmOptions,
    SglangOptions,
    VllmOptions,
)
from harness.embedded.server import running_server
from harness.errors import InputError


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (VllmOptions(port=70000), "70000 is not a port"),
        (VllmOptions(kv_tokens=8200), "8200 tokens of KV cache are not a number of blocks of 32"),
        (SglangOptions(page_tokens=0), "not a number of blocks of 0"),
        (SglangOptions(kv_tokens=4096), "A context of 8192 tokens does not fit into 4096 tokens"),
        (MlxLmOptions(model=Path("/none")), r"/none is no model that mlx-lm's server could load: .* config\.json"),
    ],
)
def test_unusable_options_are_refused_before_anything_is_installed(options: EngineOptions, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence), running_server(options):
        pass


def test_the_command_line_and_the_environment_say_what_was_asked_for(tmp_path: Path) -> None:
    model = tmp_path / "model"
    vllm = VllmOptions(model=model, served_name="x", kv_tokens=640, context_tokens=512, more=("--seed", "1"))
    words = vllm.arguments(8000)
    for pair in (
        ["--port", "8000"],
        ["--model", str(model)],
        ["--served-model-name", "x"],
        ["--num-gpu-blocks-override", "20"],
        ["--max-model-len", "512"],
        ["--seed", "1"],
    ):
        at = words.index(pair[0])
        assert words[at : at + 2] == pair
    sglang = SglangOptions(model=model, kv_tokens=640, context_tokens=512, prefix_caching=False)
    assert "--disable-radix-cache" in sglang.arguments(1)
    assert "--disable-radix-cache" not in SglangOptions(model=model).arguments(1)
    mlx = MlxLmOptions(model=model, cache_entries=3)
    assert mlx.alias == str(model)
    assert mlx.arguments(1)[-2:] == ["--prompt-cache-size", "3"]
    for kind in KINDS.values():
        variables = kind(model=model).environment(tmp_path)
        assert variables["HF_HUB_OFFLINE"] == "1"


def test_stand_ins_can_be_imported_from_and_not_called() -> None:
    program = (
        "import importlib.util\n"
        "import torchvision.transforms.v2.functional as functional\n"
        "from torchvision.transforms import InterpolationMode\n"
        "from sgl_kernel import silu_and_mul\n"
        "from sgl_kernel.scalar_type import ScalarType\n"
        "assert importlib.util.find_spec('torchvision') and InterpolationMode.NEAREST is not None\n"
        "assert {InterpolationMode.NEAREST: 1} and not hasattr(functional, '__no_such__')\n"
        "class Mine(ScalarType): pass\n"
        "silu_and_mul(1)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(STAND_INS)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "NotImplementedError: sgl_kernel.silu_and_mul is only a stand-in here: serve a dense text model"
    )
