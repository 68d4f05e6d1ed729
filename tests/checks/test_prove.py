"""`kvswarm prove` against servers whose truth is known, over real connections: what it says, and what it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.analysis import load
from harness.checks.laboratory import opened
from harness.checks.prove import Asked, Proof, is_steady, prove
from harness.checks.prove_pair import compare
from harness.cli import main
from harness.engines.target import Target
from harness.errors import InputError
from tests.checks.silent_server import SilentServer
from tests.checks.toy_server import ToyServer
from tests.engines.scripted_server import scripted_servers

NOT_FASTER = {"too-short": 2, "hit-not-faster": 1}
"""Verdicts on a toy, with their exit codes: which of them it is, is a matter of how busy this machine is."""

Serve = Callable[[ToyServer | SilentServer], str]


@pytest.fixture
def start() -> Iterator[Serve]:
    with scripted_servers() as serve:
        yield lambda server: serve(server.routes)


def proofs(folder: Path, asked: Asked, *urls: str) -> list[Proof]:
    with ExitStack() as stack:
        targets = [Target(url=url, metrics_urls=()) for url in urls]
        return prove([stack.enter_context(opened("prove", target, str(folder), {})) for target in targets], asked)


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "harness.cli", "prove", *placed(folder, *words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def placed(folder: Path, *words: str) -> list[str]:
    """Options of `kvswarm prove` with runs in `folder`, which FOLDER in `words` stands for."""
    return ["--results", str(folder / "runs"), *(word.replace("FOLDER", str(folder)) for word in words)]


def test_a_server_that_tells_nothing_is_judged_by_the_clock(start: Serve, tmp_path: Path) -> None:
    (proof,) = proofs(tmp_path, Asked(800), start(SilentServer()))
    finding = proof.finding()
    assert (finding.verdict, finding.exit_code) == ("faster-without-evidence", 0)
    assert "once in 32 times" in finding.sentence
    assert "94% confidence, 5 prefixes" in finding.sentence
    assert (proof.usage.state, proof.counter.state, proof.clock.state) == ("unknown", "unknown", "faster")


def test_a_silent_server_without_a_cache_is_off(start: Serve, tmp_path: Path) -> None:
    (proof,) = proofs(tmp_path, Asked(800), start(SilentServer(caches=False)))
    finding = proof.finding()
    assert (finding.verdict, finding.exit_code) == ("off", 1)
    assert "by the clock alone" in finding.sentence


def test_requests_that_fail_are_left_out(start: Serve, tmp_path: Path) -> None:
    """The first two are of the warm-up."""
    (proof,) = proofs(tmp_path, Asked(800), start(SilentServer(fails=2)))
    assert proof.finding().verdict == "faster-without-evidence"
    assert proof.unrelated.first_ms is None


def test_a_server_that_answers_no_more_cannot_be_judged(start: Serve, tmp_path: Path) -> None:
    (proof,) = proofs(tmp_path, Asked(), start(SilentServer(fails=1000)))
    finding = proof.finding()
    assert (finding.verdict, finding.exit_code) == ("unclear", 2)
    assert "3 requests in a row" in finding.sentence


def test_two_targets_are_compared_prefix_by_prefix(start: Serve, tmp_path: Path) -> None:
    on, off = proofs(tmp_path, Asked(800), start(SilentServer()), start(SilentServer(caches=False)))
    pays = compare(on, off)
    assert (pays.verdict, pays.exit_code) == ("pays", 0)
    other = compare(off, on)
    assert (other.verdict, other.exit_code) == ("no-difference", 1)
    assert "name the one with the cache first" in other.sentence


def test_what_was_sent_is_a_run_with_its_expected_hits(start: Serve, tmp_path: Path) -> None:
    """The toy's blocks have 16 tokens; its own rule is that of the table, to the token."""
    (proof,) = proofs(tmp_path, Asked(400), start(ToyServer(16)))
    measured = [(one.name, one.usage_cached_tokens) for one in proof.measures if one.prefix == 0]
    length = proof.measures[0].prompt_tokens
    assert measured[:4] == [("cold", 0), ("warm", 400), ("warm", 400), ("repeat", (length - 1) // 16 * 16)]
    assert measured[4:] == [("tail", 352), ("middle", 192), ("first", 0)]
    run = load(proof.laboratory.folder)
    assert run.manifest.state == "complete"
    assert len(run.measured) == 5 * 7
    assert set(run.measured["session"]) == set(range(5))


def test_a_hit_that_the_clock_does_not_see(start: Serve, tmp_path: Path) -> None:
    """The toy takes as long for what it has cached as for what it has not."""
    (proof,) = proofs(tmp_path, Asked(400), start(ToyServer(16)))
    finding = proof.finding()
    assert finding.verdict in NOT_FASTER
    assert "15 of 15 requests" in finding.sentence


def test_a_template_with_a_clock_makes_cold_what_was_sent_before(start: Serve, tmp_path: Path) -> None:
    (proof,) = proofs(tmp_path, Asked(400), start(ToyServer(16, clock=True)))
    assert proof.usage.state == "none"
    assert proof.finding().verdict == "off"


def test_a_cache_that_counts_what_nobody_sent_is_contaminated(
    start: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyServer, "_look_up", lambda self, prompt: len(prompt) // 2)
    finding = proofs(tmp_path, Asked(400), start(ToyServer()))[0].finding()
    assert (finding.verdict, finding.exit_code) == ("unclear", 2)
    assert "Contaminated: prompts that nobody sent before (cold, first)" in finding.sentence


@pytest.mark.parametrize(
    ("tokens", "message"), [(20, "give at least 64"), (8192, "give at most 8"), (10_000, "does not fit into a context")]
)
def test_a_prefix_that_cannot_be_sent(start: Serve, tmp_path: Path, tokens: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        proofs(tmp_path, Asked(tokens), start(ToyServer()))


@pytest.mark.parametrize(
    ("times", "steady"),
    [([500.0, 100.0, 101.0, 99.0], True), ([100.0, 101.0, 130.0], False), ([100.0, 101.0, 120.0], True)],
)
def test_times_stand_still_when_the_last_three_are_alike(times: list[float], steady: bool) -> None:
    assert is_steady(times) == steady


def test_the_command(start: Serve, tmp_path: Path) -> None:
    (tmp_path / "prefix.txt").write_text("The quick brown fox jumps over the lazy dog. " * 60)
    words = ("--prefix-file", "FOLDER/prefix.txt", "--labbook", "FOLDER/book.jsonl", "--json")
    done = command(tmp_path, "--target", start(ToyServer()), *words)
    printed = json.loads(done.stdout)
    assert done.returncode == printed["exit_code"] == NOT_FASTER[printed["verdict"]]
    assert printed["numbers"]["usage"]["hits"] == 15
    (line,) = map(json.loads, (tmp_path / "book.jsonl").read_text().splitlines())
    assert line["command"] == "prove"
    assert all(line[key] == printed[key] for key in ("verdict", "exit_code", "sentence", "numbers"))
    assert load(line["folder"], strict=True).manifest.options["prefix_file"] == str(tmp_path / "prefix.txt")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Give one target (--target URL), or two targets or runs to compare"),
        (("--target", "http://127.0.0.1:1", "--ab", "a", "b"), "Give one target"),
        (("--ab", "a", "b"), "nor is it a run in "),
        (("--target", "http://127.0.0.1:1"), "nothing listens at 127.0.0.1:1"),
        (("--target", "http://127.0.0.1:1", "--prefix-file", "FOLDER/nowhere.txt"), "nowhere.txt cannot be read"),
        (("--target", "http://127.0.0.1:1", "--prefix-file", "FOLDER/short.txt"), "has 2 words"),
        (("--target", "http://127.0.0.1:1", "--prefix-file", "FOLDER/short.txt", "--prefix-tokens", "99"), "not both"),
        (("--target", "http://127.0.0.1:1", "--labbook", "/"), "lab notebook / cannot be written to"),
    ],
)
def test_wrong_input_is_one_sentence_and_2(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "short.txt").write_text("two words")
    monkeypatch.setattr(sys, "argv", ["kvswarm", "prove", *placed(tmp_path, *words)])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in told
    assert len(told.splitlines()) == 1


def test_two_targets_by_the_command(start: Serve, tmp_path: Path) -> None:
    """The toys take no time, so nothing is faster; what each of them counts is told beside it."""
    urls = (start(ToyServer()), start(ToyServer(caches=False)))
    done = command(tmp_path, "--ab", *urls, "--prefix-tokens", "300", "--labbook", "FOLDER/book.jsonl")
    assert done.returncode == 1, done.stderr
    words = " ".join(done.stdout.split())
    assert "Verdict: no-difference. No difference that matters." in words
    assert words.count("Medians over 5 prefixes of 300 tokens") == 2
    (line,) = map(json.loads, (tmp_path / "book.jsonl").read_text().splitlines())
    assert line["numbers"]["a"]["verdict"] in NOT_FASTER
    assert line["numbers"]["b"]["verdict"] == "off"
    assert [load(one["folder"]).manifest.state for one in (line, *line["others"])] == ["complete", "complete"]
    ids = [line["run"], *(one["run"] for one in line["others"])]
    again = command(tmp_path, "--ab", *ids, "--labbook", "FOLDER/book.jsonl", "--json")
    assert again.returncode == 1, again.stderr
    last = json.loads((tmp_path / "book.jsonl").read_text().splitlines()[-1])
    assert last["verdict"] == json.loads(again.stdout)["verdict"] == "no-difference"
    assert [last["run"], *(one["run"] for one in last["others"])] == ids
    assert last.keys() == line.keys()


def test_a_slow_server_gets_a_shorter_prefix_unless_somebody_asked_for_its_length(
    start: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 words of 0.5 ms would be computed 13 times: 13 s."""
    monkeypatch.setattr("harness.checks.prove.BUDGET_S", 0.3)
    (proof,) = proofs(tmp_path, Asked(), start(SilentServer(word_s=0.0005)))
    assert 64 <= proof.prefix_tokens < 2000
    assert any(f"has {proof.prefix_tokens} tokens only" in note for note in proof.laboratory.notes)
    (asked,) = proofs(tmp_path, Asked(300), start(SilentServer(word_s=0.0005)))
    assert asked.prefix_tokens == 300
