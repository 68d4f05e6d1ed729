"""`kvswarm lint`, as a user types it; docs/lint.md shows what comes out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.lint.kinds import FIXABLE, KINDS
from tests.lint.labelled_faults import FAULTS
from tests.lint.labelled_harmless import HARMLESS
from tests.lint.labelled_later import LATER
from tests.lint.logs import written
from tests.lint.texts import RULES, TOOLS, chat

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def lint(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness.cli", "lint", *map(str, words)]
    environment = {**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, env=environment, cwd=cwd)


def test_the_example_of_the_page_is_what_is_printed(tmp_path: Path) -> None:
    rows, command, expected = BLOCKS[:3]
    assert command == "kvswarm lint shop.jsonl\n"
    (tmp_path / "shop.jsonl").write_text(rows)
    done = lint("shop.jsonl", cwd=tmp_path)
    assert [line.rstrip() for line in done.stdout.splitlines()] == expected.splitlines()
    assert (done.returncode, done.stderr) == (1, "")


def test_the_page_tells_every_option_and_kind(tmp_path: Path) -> None:
    help_text = lint("--help", cwd=tmp_path).stdout
    options = set(re.findall(r"--[a-z][a-z-]+", help_text)) - {"--help"}
    table = PAGE.split("| option | does |\n", 1)[1].split("\n\n", 1)[0]
    assert set(re.findall(r"^\| `(--[a-z-]+)", table, re.MULTILINE)) == options
    assert "0 nothing found, 1 found, 2 wrong input" in " ".join(help_text.replace("│", " ").split())
    kinds = PAGE.split("| kind | is found where", 1)[1].split("\n\n", 1)[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", kinds, re.MULTILINE) == list(KINDS)


def test_the_page_counts_the_labelled_sets() -> None:
    assert f"{len(FAULTS)} with faults" in PAGE
    assert f"{len(HARMLESS)} that only look like it" in PAGE
    assert f"{len(LATER)} more were written" in PAGE


def test_nothing_found_is_exit_code_0(tmp_path: Path) -> None:
    written(tmp_path / "log.jsonl", HARMLESS["questions_of_their_own"])
    done = lint("log.jsonl", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Nothing was found that breaks a prefix." in done.stdout


def test_both_sides_of_a_difference_are_marked(tmp_path: Path) -> None:
    written(tmp_path / "log.jsonl", FAULTS["blanks_at_the_ends_of_lines"][1])
    lines = lint("log.jsonl", cwd=tmp_path).stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("  line 1"))
    assert lines[at] == "  line 1  Manual.··\\nChapter Brakes. The pad"
    assert lines[at + 1].rstrip() == "                 ^^"


def test_everything_as_json(tmp_path: Path) -> None:
    written(tmp_path / "log.jsonl", FAULTS["shuffled_tools_and_a_time"][1])
    value = json.loads(lint("log.jsonl", "--json", "--fix", "out.jsonl", cwd=tmp_path).stdout)
    assert [one["kind"] for one in value["kinds"]] == ["tools-shuffled", "timestamp-first"]
    assert [one["fixable"] for one in value["kinds"]] == [one["kind"] in FIXABLE for one in value["kinds"]]
    finding = value["problems"][1]["findings"][0]
    assert (finding["request"], finding["earlier"], finding["message"]) == ("line 2", "line 1", 0)
    assert (finding["character"], finding["excerpt"]["differing"]) == (10, "1")
    assert value["after"]["hit_tokens"] > value["fixed"]["after"]["hit_tokens"] > value["now"]["hit_tokens"]
    assert value["fixed"]["changed"] == {"tools-shuffled": 3}


def test_fix_says_what_it_did(tmp_path: Path) -> None:
    written(tmp_path / "log.jsonl", FAULTS["shuffled_tools_and_a_time"][1])
    done = lint("log.jsonl", "--fix", "out.jsonl", cwd=tmp_path)
    assert "tools-shuffled: put right in 3 requests" in done.stdout
    assert "Left as it was, as the order of a text may mean something: timestamp-first." in done.stdout
    assert re.search(r"Hit rate: [\d.]+ % before, [\d.]+ % after\.", done.stdout)
    again = lint("out.jsonl", "--json", cwd=tmp_path)
    assert [one["kind"] for one in json.loads(again.stdout)["kinds"]] == ["timestamp-first"]


def test_blocks_and_capacity(tmp_path: Path) -> None:
    written(tmp_path / "log.jsonl", FAULTS["iso_time_in_the_first_line"][1])
    exact, blocks, small = (
        json.loads(lint("log.jsonl", "--json", *options, cwd=tmp_path).stdout)
        for options in ((), ("--block", 32), ("--capacity-tokens", 64))
    )
    assert blocks["after"]["hit_tokens"] % 32 == 0
    assert exact["after"]["hit_tokens"] > blocks["after"]["hit_tokens"] > small["after"]["hit_tokens"]
    assert small["cache"] == {"block_tokens": 16, "capacity_tokens": 64}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["missing.jsonl"], "missing.jsonl: there is no such file"),
        (["bad.jsonl"], "bad.jsonl, line 2: not valid JSON"),
        (["log.jsonl", "log.jsonl", "log.jsonl"], "3 files were given; give one log of requests, or two prompts"),
        (["log.jsonl", "--tokenizer", "bad.jsonl"], "bad.jsonl: not a tokenizer.json"),
        (["log.jsonl", "--fix", "log.jsonl"], "is the file that is read"),
        (["log.jsonl", "--target", "http://127.0.0.1:1"], "nothing listens at 127.0.0.1:1"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(tmp_path: Path, words: list[str], sentence: str) -> None:
    written(tmp_path / "log.jsonl", [chat(RULES, "Why?", tools=TOOLS)])
    (tmp_path / "bad.jsonl").write_text(f"{json.dumps(chat(RULES))}\nnonsense\n")
    done = lint(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("kvswarm: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_tokeniser_counts_where_one_is_given(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    written(tmp_path / "log.jsonl", [chat("one two", "three four five")])
    value = json.loads(lint("log.jsonl", "--json", "--tokenizer", "tokenizer.json", cwd=tmp_path).stdout)
    assert value["now"]["prompt_tokens"] == 3 + 2 + 2 + 3 + 3 + 2 + 3
    assert "counted by tokenizer.json" in value["tokens"]
