"""`kvswarm target check`: tables, JSON and exit codes, against toy servers that only speak OpenAI's API."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checks.by_hand import NOT_AS_IT_SHOULD, UNCLEAR, Checked, exit_code
from harness.engines.base import Identity
from harness.engines.target import Target
from harness.record.manifest import StartUpCheck
from tests.checks.test_prompts import lexicon
from tests.checks.toy_server import ToyServer

Serve = Callable[[ToyServer], str]


def target_check(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness.cli", "target", "check", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def checked(verdict: str) -> Checked:
    check = StartUpCheck(verdict=verdict, sentence="", granularity_tokens=None, probes=())
    return Checked(Target(url="http://127.0.0.1:1"), Identity("toy", "toy"), lexicon(), check)


def test_tables_and_exit_code_of_a_cache_that_works(serve: Serve) -> None:
    done = target_check(serve(ToyServer(16)))
    assert done.returncode == 0, done.stderr
    rows = [line.replace("│", " ").split() for line in done.stdout.splitlines()]
    assert [row[:5] for row in rows if row[:1] in (["repeat"], ["half"])] == [
        ["repeat", "1024", "-", "1008", "-"],  # the block size is not told, and there are no metrics
        ["half", "1024", "-", "512", "-"],  # 511 tokens by the plan, and the template's first one
    ]
    assert "the counts show blocks of 16 tokens" in done.stdout
    assert "Verdict: works." in done.stdout
    assert "The chat template was counted, not seen" in " ".join(done.stdout.split())


def test_several_targets_as_json(serve: Serve, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(f"url: {serve(ToyServer(caches=False))}\nheaders: {{X-Team: secret-team}}\n")
    done = target_check(f"{serve(ToyServer(16))},{broken}", "--json")
    assert done.returncode == NOT_AS_IT_SHOULD, done.stderr
    works, off = json.loads(done.stdout)
    assert works["check"]["verdict"] == "works"
    assert works["check"]["granularity_tokens"] == 16
    assert works["identity"]["context_tokens"] == 8192
    assert works["identity"]["prefix_caching"] is None
    assert off["target"] == "broken"
    assert off["check"]["verdict"] == "caching-off"
    assert "secret-team" not in done.stdout


def test_a_model_that_is_not_there(serve: Serve) -> None:
    done = target_check(serve(ToyServer()), "--model", "other")
    assert done.returncode == 2
    assert "does not serve a model 'other'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_target_that_is_not_there() -> None:
    done = target_check("http://127.0.0.1:1")
    assert done.returncode == 2
    assert "nothing listens at 127.0.0.1:1" in done.stderr


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["works"], 0),
        (["works", "works"], 0),
        (["differs"], NOT_AS_IT_SHOULD),
        (["caching-off"], NOT_AS_IT_SHOULD),
        (["reporting-off"], NOT_AS_IT_SHOULD),
        (["template-drift"], NOT_AS_IT_SHOULD),
        (["unclear"], UNCLEAR),
        (["works", "unclear"], UNCLEAR),
        (["unclear", "differs", "works"], NOT_AS_IT_SHOULD),
    ],
)
def test_exit_codes(verdicts: list[str], code: int) -> None:
    assert exit_code([checked(verdict) for verdict in verdicts]) == code
