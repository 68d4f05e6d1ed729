"""`kvswarm trace reuse`, as a user types it; docs/traces.md shows what comes out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.traces.written import MOONCAKE, agentic, call, chat, lines

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")


def reuse(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness.cli", "trace", "reuse", *map(str, words)]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, env=environment, cwd=ROOT)


def test_the_example_of_the_page_is_what_is_printed(tmp_path: Path) -> None:
    blocks = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    rows, command, expected = blocks[:3]
    (tmp_path / "day.jsonl").write_text(rows)
    assert command == "kvswarm trace reuse day.jsonl\n"
    printed = reuse(tmp_path / "day.jsonl").stdout
    assert [line.rstrip() for line in printed.splitlines()] == expected.splitlines()


def test_the_page_tells_every_option() -> None:
    options = set(re.findall(r"--[a-z][a-z-]+", reuse("--help").stdout)) - {"--help"}
    table = PAGE.split("| option | does |\n", 1)[1].split("\n\n", 1)[0]
    assert set(re.findall(r"^\| `(--[a-z-]+)", table, re.MULTILINE)) == options


def test_numbers_as_json_and_a_picture(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", MOONCAKE)
    done = reuse(path, "--json", "--capacity-tokens", "512,1024", "--plot", tmp_path / "p.svg")
    assert done.returncode == 0
    assert done.stderr == ""
    value = json.loads(done.stdout)
    assert [at["capacity_tokens"] for at in value["capacities"]] == [512, 1024]
    assert value["infinite"]["hit_rate"] == 1024 / 2724
    assert (tmp_path / "p.svg").read_text().startswith("<svg")


def test_every_format_is_known(tmp_path: Path) -> None:
    coarse = reuse(agentic(tmp_path / "a.json", [call(0, 130, [1, 2]), call(1, 130, [1, 2])]), "--block", 128, "--json")
    assert json.loads(coarse.stdout)["infinite"]["hit_rate"] == 128 / 260
    text = ("user", "x" * 400)
    fine = reuse(lines(tmp_path / "m.jsonl", [chat(text), chat(text)]), "--block", 10, "--json")
    assert json.loads(fine.stdout)["infinite"]["hit_rate"] == 100 / 216


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--block", "16"], "give a multiple of 512"),
        (["--trace-block", "256"], "line 1: input_length 1100 takes 5 blocks of 256 tokens"),
        (["--capacity-tokens", "1k"], '"1k" is no number of tokens'),
        (["--sample", "0"], "--sample is a share above 0"),
        (["--plot", "p.png"], "ends with .svg"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(tmp_path: Path, words: list[str], sentence: str) -> None:
    done = reuse(lines(tmp_path / "t.jsonl", MOONCAKE), *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("kvswarm: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_bad_lines_are_refused_or_left_out(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", [*MOONCAKE, {"timestamp": 0}])
    refused = reuse(path)
    assert refused.returncode == 2
    assert f"{path}, line 4: " in refused.stderr
    kept = reuse(path, "--skip-bad-lines")
    assert kept.returncode == 0
    assert "1 entry was left out; the first: line 4" in kept.stdout.replace("\n", " ")
