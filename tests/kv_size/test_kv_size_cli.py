"""`kvswarm kv-size`, as a user types it; docs/kv-size.md shows what comes out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.kv_size.cards import CARDS
from harness.kv_size.engines import engines
from tests.kv_size.real_models import MODELS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "kv-size.md").read_text(encoding="utf-8")
NUMBERS = ["--layers", "36", "--kv-heads", "8", "--head-dim", "128"]


def kv_size(*words: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness.cli", "kv-size", *map(str, words)]
    path = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8", "PYTHONPATH": path}
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, env=environment, cwd=cwd)


def figures(*words: object) -> Any:
    done = kv_size(*words, "--json")
    assert done.stderr == ""
    assert done.returncode == 0
    return json.loads(done.stdout)


def test_the_example_of_the_page_is_what_is_printed(tmp_path: Path) -> None:
    blocks = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    config, command, expected = blocks[1:4]
    (tmp_path / "config.json").write_text(config)
    words = command.split()
    assert words[:2] == ["kvswarm", "kv-size"]
    printed = kv_size(*words[2:], cwd=tmp_path).stdout
    assert [line.rstrip() for line in printed.splitlines()] == expected.splitlines()


def test_the_page_tells_every_option_type_and_card() -> None:
    options = set(re.findall(r"--[a-z][a-z-]+", kv_size("--help").stdout)) - {"--help"}
    table = PAGE.split("| option | does |\n", 1)[1].split("\n\n", 1)[0]
    first_cells = "".join(line.split(" | ")[0] for line in table.splitlines())
    assert set(re.findall(r"`(--[a-z-]+)", first_cells)) == options
    types = PAGE.split("| --- | --- | --- |\n", 1)[1].split("\n\n", 1)[0]
    named = {name for line in types.splitlines() for name in re.findall(r"`(\w+)`", line.split(" | ")[1])}
    assert named == {one.name for engine in engines() for one in engine.types}
    assert set(re.findall(r"`([a-z0-9-]+)`", PAGE.split("Cards:", 1)[1])) == set(CARDS)


def test_the_check_of_qwen3_8b() -> None:
    """36 layers, 8 KV heads of 128, 16 bits: 147,456 bytes a token, 4.83 GB at 32,768 tokens."""
    (row,) = figures(*NUMBERS, "--engine", "vllm", "--type", "bfloat16")["types"]
    assert row["bytes_per_token"] == 147_456
    assert row["session_bytes"] == 4_831_838_208
    assert "4.83 GB" in kv_size(*NUMBERS, "--engine", "vllm").stdout


def test_a_gguf_file_with_its_own_size(tiny_model: Path) -> None:
    value = figures(tiny_model, "--card", "1GB", "--usable", "1", "--tokens", "1000", "--type", "f16")
    assert value["weights_bytes"] == tiny_model.stat().st_size
    assert value["types"][0]["bytes_per_token"] == 4096
    assert value["types"][0]["sessions"] == (10**9 - tiny_model.stat().st_size) // 4_096_000


def test_weights_in_every_way(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MODELS["Qwen3-8B"].config))
    assert figures(tmp_path)["weights_bytes"] is None
    assert "not known without the weights" in kv_size(tmp_path, "--card", "h100").stdout.replace("\n", " ")
    (tmp_path / "model.safetensors").write_bytes(b"x" * 1000)
    assert figures(tmp_path)["weights_bytes"] == 1000
    assert figures(tmp_path, "--weights", "16GiB")["weights_bytes"] == 2**34
    assert figures(tmp_path, "--parameters", "8B")["weights_bytes"] == 16 * 10**9
    assert figures(tmp_path, "--parameters", "8B", "--weight-bits", "4")["weights_bytes"] == 4 * 10**9


def test_windows_states_and_what_is_said_of_them(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(MODELS["Gemma-3-27B"].config))
    shown = kv_size(tmp_path, "--engine", "sglang").stdout
    assert "52 with attention to the last 1,024 tokens" in shown
    assert "81,920" in shown
    kept = figures(tmp_path, "--keep-windows", "--type", "bf16")["types"][0]
    assert kept["session_bytes"] == 507_904 * 32_768
    (tmp_path / "config.json").write_text(json.dumps(MODELS["Jamba-v0.1"].config))
    assert "16.1 MB" in kv_size(tmp_path, "--engine", "sglang").stdout


def test_keys_and_values_of_two_types() -> None:
    (row,) = figures(*NUMBERS, "--type", "q8_0", "--type-v", "q4_0")["types"]
    assert row["bytes_per_token"] == 36 * 8 * (136 + 72)


def test_the_reminder() -> None:
    shown = " ".join(kv_size(*NUMBERS).stdout.split())
    assert "fewer than 16 bits changes what the model answers" in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--layers is missing: give a file or a folder, or numbers"),
        (["no-such-model"], "no-such-model: there is no such file or folder."),
        ([ROOT / "docs"], "it holds neither a config.json nor a GGUF file"),
        ([ROOT / "README.md"], "line 1: not valid JSON"),
        ([ROOT / "README.md", "--layers", "3"], "--layers does not go with"),
        (["--layers", "many"], "--layers many is not a whole number"),
        (["--layers", "-3"], "--layers -3 is not a whole number"),
        ([*NUMBERS, "--tokens", "0"], "--tokens 0 is not a whole number"),
        ([*NUMBERS, "--type", "q9_0"], 'There is no cache type "q9_0"; did you mean q8_0?'),
        ([*NUMBERS, "--engine", "llama.cpp"], 'There is no engine "llama.cpp"; did you mean llama-cpp?'),
        ([*NUMBERS, "--card", "rtx4090"], "did you mean rtx-4090"),
        ([*NUMBERS, "--card", "24GiB", "--usable", "90%"], "--usable 90% is not a share"),
        ([*NUMBERS, "--weights", "big"], "--weights big is not a size"),
        ([*NUMBERS, "--weights", "1GB", "--parameters", "8B"], "--weights and --parameters tell the same"),
        ([*NUMBERS, "--parameters", "8B", "--weight-bits", "0"], "--weight-bits 0 is not a whole number"),
        ([*NUMBERS, "--group-size", "48"], "give one of 32, 64, 128"),
        ([*NUMBERS, "--type", "octave_k3v4"], "vLLM cannot keep this model's cache in octave_k3v4"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(words: list[object], sentence: str) -> None:
    done = kv_size(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("kvswarm: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
