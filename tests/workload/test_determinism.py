"""The same texts in every process: workers agree without talking to each other."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from harness.workload.corpus import open_corpus
from harness.workload.lexicon import Lexicon
from harness.workload.scenario import load_scenario
from harness.workload.template import Template
from harness.workload.text import Renderer
from harness.workload.words import CANDIDATES
from harness.workload.workload import Workload
from tests.workload.samples import pairs, scripted_prompts

ROOT = Path(__file__).parents[2]


def digest(name: str) -> str:
    """Of all texts, lengths, paths and pauses of some sessions of a shipped scenario."""
    scenario = load_scenario(name, ROOT / "scenarios")
    between = {"system>user": 3, "user>assistant": 4, "assistant>user": 5}
    template = Template(1, {"system": 2}, between, {"system": 6}, head_known=True, reply_after_tail=False)
    documents = tuple((1000 + number, 3) for number in range(64))
    lexicon = Lexicon.from_json(
        {
            "words": CANDIDATES[:512],
            "template": template.to_json(),
            "documents": documents if scenario.kind == "long-document" else (),
            "corpus": open_corpus("python-docs").fingerprint,
            "exact": True,
            "notes": [],
        }
    )
    renderer, workload = Renderer(lexicon, scenario), Workload(scenario, "run")
    sum_of_all = sha256()
    for number in (0, 1, 7, 1_000_000):
        session = workload.session(number)
        for turn, prompt in zip(session.turns, scripted_prompts(session), strict=True):
            said = (renderer.chat(prompt), pairs(renderer.path(prompt)), turn.output_tokens, turn.think_time_s)
            sum_of_all.update(repr(said).encode())
    return sum_of_all.hexdigest()


def test_another_process_with_other_hashes_makes_the_same_texts() -> None:
    names = ["agent-loop", "long-document", "multi-round", "shared-tenants", "timestamp-first"]
    program = f"from tests.workload.test_determinism import digest; print([digest(name) for name in {names}])"
    here = [digest(name) for name in names]
    assert len(set(here)) == len(names)
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        ran = subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert ran.stdout.strip() == str(here)


@pytest.mark.parametrize(
    ("name", "taken_once"),
    [
        ("agent-loop", "850d803639684288fb59b54c000e12bd942792ac9d309843ba83ebf6a87e2108"),
        ("multi-round", "cfd9cd281bde62dba184e69454c0e381920626faa61b091ccf0d7601c7770c27"),
    ],
)
def test_texts_of_shipped_scenarios_are_the_same_on_every_machine(name: str, taken_once: str) -> None:
    """A digest changes only if texts or lengths do, which makes results incomparable."""
    assert digest(name) == taken_once
