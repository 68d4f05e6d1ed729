"""kvswarm persist at real and simulated servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from typer.testing import CliRunner

from harness.analysis import load
from harness.checks.examine import examine
from harness.checks.laboratory import Finding
from harness.checks.persist import Wish, persist
from harness.cli import app
from harness.embedded.server import RunningServer, running_server
from harness.errors import InputError
from harness.sim.options import SimOptions

Start = Callable[..., RunningServer]


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """These servers' counters are right as soon as they are idle."""
    monkeypatch.setattr("harness.collector.pages.SETTLE_EVERY_S", 0.05)


def found(url: str, folder: Path, **wish: Any) -> Finding:
    wished, results = Wish(**wish), str(folder / "runs")
    note = wished.note(results)
    return examine(
        "persist",
        url,
        "",
        folder / "book",
        results,
        wished.options(),
        lambda lab: persist(lab, wished, note),
        in_json=True,
    )


def runs(folder: Path) -> list[str]:
    return [json.loads(line)["folder"] for line in (folder / "book").read_text().splitlines()]


def counts(finding: Finding) -> tuple[int, ...]:
    roles = ("warm", "erased", "restored")
    return tuple(finding.numbers[f"{role}_cached_tokens"] for role in roles)


def fill(server: RunningServer, slot: int, words: int = 100) -> None:
    """Somebody's conversation."""
    body: Any = {"messages": [{"role": "user", "content": "hello " * words}], "max_tokens": 1, "id_slot": slot}
    assert requests.post(f"{server.url}/chat/completions", json=body, timeout=60).status_code == 200


def held(server: RunningServer) -> list[int]:
    slots = requests.get(server.url.replace("/v1", "/slots"), timeout=60).json()
    return [one.get("n_prompt_tokens", 0) for one in slots]


@pytest.mark.parametrize(
    ("options", "verdict", "exit_code"),
    [
        ({"manner": "llama-cpp", "saves": True}, "works", 0),
        ({"manner": "llama-cpp", "saves": True, "prefix_caching": False}, "no-hits", 1),
        ({"manner": "llama-cpp"}, "off", 1),
        ({"manner": "vllm", "prefix_caching": False}, "not-offered", 2),
        ({"manner": "sglang"}, "not-offered", 2),
        ({"manner": "mlx-lm"}, "not-offered", 2),
    ],
)
def test_verdicts_on_simulated_engines(options: dict[str, Any], verdict: str, exit_code: int, tmp_path: Path) -> None:
    saves = options.pop("saves", False)
    folder = str(tmp_path / "slots") if saves else None
    with running_server(SimOptions(time_scale=20.0, slot_save_path=folder, **options)) as server:
        finding = found(server.target, tmp_path)
    assert (finding.verdict, finding.exit_code) == (verdict, exit_code)
    if verdict == "works":
        prompt = finding.numbers["prompt_tokens"]
        assert counts(finding) == (prompt - 1, 0, prompt - 1)


def test_a_real_slot_is_restored_and_again_by_a_new_process(llama_cpp_server: Start, tmp_path: Path) -> None:
    """To the token: all but the last token of the prompt, whichever process saved the slot."""
    slots = tmp_path / "slots"
    server = llama_cpp_server(slots=1, context_tokens=1024, slot_save_path=slots)
    first = found(server.target, tmp_path, prefix_tokens=128, slot_dir=slots)
    prompt = first.numbers["prompt_tokens"]
    assert (first.verdict, first.exit_code) == ("works", 0)
    assert counts(first) == (prompt - 1, 0, prompt - 1)
    assert (first.numbers["saved_tokens"], first.numbers["restored_tokens"]) == (prompt, prompt)
    assert first.numbers["saved_bytes"] == first.numbers["restored_bytes"]
    [file] = slots.iterdir()
    assert (file.stat().st_size, file.stat().st_mode & 0o777) == (first.numbers["saved_bytes"], 0o600)
    assert "Nobody but its owner may read it" in first.sentence
    assert held(server) == [0]
    server.process.terminate()

    other = llama_cpp_server(slots=1, context_tokens=1024, slot_save_path=slots)
    second = found(other.target, tmp_path, restore=runs(tmp_path)[0])
    assert (second.verdict, second.numbers["same_process"]) == ("works", False)
    assert second.numbers["prompt_tokens"] == second.numbers["restored_tokens"] == prompt
    assert counts(second) == (prompt - 1, 0, prompt - 1)
    run = load(runs(tmp_path)[1])
    assert (run.manifest.state, run.problems) == ("complete", ())
    assert set(run.requests["status"]) == {"ok"}
    assert run.measured["warmth"].tolist() == ["cold", "warm", "warm"] * 3
    assert set(run.measured["slot"]) == {0}

    file.write_bytes(file.read_bytes()[:1000])
    third = found(other.target, tmp_path, restore="latest")
    assert (third.verdict, third.exit_code) == ("not-restored", 1)

    note = Path(runs(tmp_path)[0]) / "saved.json"
    note.write_text(note.read_text().replace('"version": "', '"version": "old '))
    with pytest.raises(InputError, match=r"saved with version 'old .*', and here version is"):
        found(other.target, tmp_path, restore=runs(tmp_path)[0])


def test_a_real_server_without_a_folder_for_slots(llama_cpp_server: Start, tmp_path: Path) -> None:
    """Said before any slot is looked at, as somebody holds the only one."""
    server = llama_cpp_server(slots=1, context_tokens=1024)
    fill(server, 0)
    held_before = held(server)
    finding = found(server.target, tmp_path)
    assert (finding.verdict, finding.exit_code) == ("off", 1)
    assert held(server) == held_before


def test_others_conversations_stay_unless_told(llama_cpp_server: Start, tmp_path: Path) -> None:
    server = llama_cpp_server(slots=2, context_tokens=2048, cache_ram_mib=0, slot_save_path=tmp_path / "slots")
    fill(server, 0)
    before = held(server)[0]
    assert found(server.target, tmp_path, prefix_tokens=128).numbers["slot"] == 1
    assert held(server) == [before, 0]
    fill(server, 1, words=50)
    with pytest.raises(InputError, match=f"slot 0: {before} tokens.*--erase-others to let the check empty slot 1"):
        found(server.target, tmp_path, prefix_tokens=128)
    assert held(server)[0] == before
    assert held(server)[1] > 0
    told = found(server.target, tmp_path, prefix_tokens=128, erase_others=True)
    assert (told.verdict, told.numbers["slot"]) == ("works", 1)
    assert held(server) == [before, 0]


def test_somebody_who_comes_into_the_slot_ends_the_check(
    llama_cpp_server: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = llama_cpp_server(slots=1, context_tokens=1024, slot_save_path=tmp_path / "slots")
    monkeypatch.setattr("harness.checks.persist_note.write", lambda *_: fill(server, 0))
    finding = found(server.target, tmp_path, prefix_tokens=128)
    assert (finding.verdict, finding.exit_code) == ("unanswered", 2)
    assert "that this check did not put there" in finding.sentence
    assert held(server)[0] > 100


BAD: dict[str, list[str]] = {
    "Give a server with --target": [],
    "one of the two": ["--target", "http://127.0.0.1:1", "--mlx-model", "m"],
    "--slot-dir nowhere is no folder": ["--target", "http://127.0.0.1:1", "--slot-dir", "nowhere"],
    "of no use with --restore": ["--target", "http://127.0.0.1:1", "--restore", "r", "--prefix-tokens", "200"],
    "folder on this machine": ["--target", "http://127.0.0.1:1", "--results", "s3://bucket/x"],
    "--kv-bits is of no use with --target": ["--target", "http://127.0.0.1:1", "--kv-bits", "8"],
    "--erase-others, --slot-dir and --model are of no use": ["--mlx-model", "m", "--erase-others"],
    "m is no model that mlx-lm could load": ["--mlx-model", "m"],
    "There is no run 'r'": ["--target", "http://127.0.0.1:1", "--restore", "r"],
    "nothing listens": ["--target", "http://127.0.0.1:1"],
    "cannot be written to": ["--target", "http://127.0.0.1:1", "--labbook", "no/such/folder"],
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_sentence(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words) as refused:
        CliRunner().invoke(app, ["persist", *BAD[words]], catch_exceptions=False)
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)


def test_a_length_that_the_target_does_not_take_is_refused(tmp_path: Path) -> None:
    with running_server(SimOptions(manner="llama-cpp", slot_save_path=str(tmp_path / "slots"))) as server:
        for prefix_tokens in (5, 100_000):
            with pytest.raises(InputError, match="this target needs at least"):
                found(server.target, tmp_path, prefix_tokens=prefix_tokens)
