"""A trace that cannot be replayed is refused before anything is sent, with one sentence."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.workload.change import changed
from harness.workload.scenario import Replay, Scenario, load_scenario
from harness.workload.workload import Workload
from tests.traces.written import MOONCAKE, chat, lines

GOOD = {"name": "mine", "kind": "replay", "trace": "t.jsonl"}


def write(folder: Path, **keys: object) -> Path:
    path = folder / "mine.yaml"
    path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items()), encoding="utf-8")
    return path


def load(folder: Path, **keys: object) -> Scenario:
    return load_scenario(str(write(folder, **GOOD | keys)), folder)


def complaint(folder: Path, **keys: object) -> str:
    with pytest.raises(InputError) as caught:
        Workload(load(folder, **keys), "n")
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a good trace, t.jsonl."""
    lines(tmp_path / "t.jsonl", MOONCAKE)
    return tmp_path


def test_paths_are_relative_to_the_scenario_file_and_what_was_found_is_kept(folder: Path) -> None:
    scenario = load(folder)
    assert isinstance(scenario, Replay)
    assert Path(scenario.trace) == folder / "t.jsonl"
    assert scenario.fingerprint == sha256((folder / "t.jsonl").read_bytes()).hexdigest()


def test_a_trace_that_is_not_there_is_named(folder: Path) -> None:
    message = complaint(folder, trace="none.jsonl")
    assert f"mine.yaml, key trace: there is no file {folder / 'none.jsonl'}" in message
    assert f"key tokenizer: there is no file {folder / 'tokenizer.json'}" in complaint(
        folder, tokenizer="tokenizer.json"
    )


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"timestamp": 2000, "input_length": 600, "output_length": 9, "hash_ids": [0, "x"]}, 'hash_ids holds "x"'),
        ({"timestamp": 2000, "input_length": 600, "output_length": 9, "hash_ids": [0]}, "takes 2 blocks of 512 tokens"),
        ({"timestamp": 100, "input_length": 600, "output_length": 9, "hash_ids": [0, 3]}, "goes back from 1.5 s"),
        ({"timestamp": 2000, "input_length": 600, "output_length": 9}, "the key hash_ids is missing"),
    ],
)
def test_the_readers_sentence_comes_through_and_bad_lines_can_be_left_out(
    folder: Path, row: dict[str, object], told: str
) -> None:
    lines(folder / "t.jsonl", [*MOONCAKE, row])
    message = complaint(folder)
    assert message.startswith(f"{folder / 't.jsonl'}, line 4: ")
    assert told in message
    assert "skip_bad_lines: true in a scenario" in message
    kept = Workload(load(folder, skip_bad_lines=True), "n")
    assert [kept.session(number).turns[0].question.tokens for number in range(4)] == [1100, 1024, 600, 1100]


def test_another_trace_than_the_runs_is_refused(folder: Path) -> None:
    scenario = load(folder)
    lines(folder / "t.jsonl", MOONCAKE[:2])
    with pytest.raises(InputError, match="does not have the fingerprint that the scenario has"):
        Workload(Scenario.from_json(scenario.to_json()), "n")
    assert "does not have the fingerprint" in complaint(folder, fingerprint="0" * 64)


def test_another_trace_can_be_set_from_the_command_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = folder / "here" / "other.jsonl"
    other.parent.mkdir()
    lines(other, MOONCAKE[:2])
    monkeypatch.chdir(other.parent)
    scenario = changed(load(folder), "trace=other.jsonl; seed=3")
    assert isinstance(scenario, Replay)
    # Its path counts from where the command is given, and every worker checks that it has this very file.
    assert (Path(scenario.trace), scenario.seed) == (other, 3)
    assert scenario.fingerprint == sha256(other.read_bytes()).hexdigest()
    sent = Workload(Scenario.from_json(scenario.to_json()), "n")
    assert [sent.session(number).turns[0].question.tokens for number in range(4)] == [1100, 1024, 1100, 1024]
    lines(other, MOONCAKE)
    with pytest.raises(InputError, match="does not have the fingerprint"):
        Workload(Scenario.from_json(scenario.to_json()), "n")


def test_a_fingerprint_that_is_set_with_a_trace_is_held(folder: Path) -> None:
    other = lines(folder / "other.jsonl", MOONCAKE[:2])
    wanted = sha256(other.read_bytes()).hexdigest()
    scenario = changed(load(folder), f"fingerprint={wanted}; trace={other}")
    assert isinstance(scenario, Replay)
    assert scenario.fingerprint == wanted
    with pytest.raises(InputError, match="does not have the fingerprint"):
        changed(load(folder), f"trace={other}; fingerprint={'f' * 64}")


def test_a_trace_that_cannot_be_set_is_told_in_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(InputError) as error:
        changed(load(folder), "trace=none.jsonl")
    assert str(error.value).startswith(f"set 'trace=none.jsonl', key trace: there is no file {folder / 'none.jsonl'}; ")
    lines(folder / "m.jsonl", [chat(("user", "hello"))])
    with pytest.raises(InputError, match=r"m\.jsonl does not tell when requests were sent; give times: none"):
        changed(load(folder), "trace=m.jsonl")
    assert changed(load(folder), "trace=m.jsonl; times=none; output_tokens=5")


def test_other_keys_leave_the_trace_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = load(folder)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert changed(scenario, "times=none") == scenario.model_copy(update={"times": "none"})


def test_a_changed_file_is_read_anew(folder: Path) -> None:
    assert Workload(load(folder), "n").session(1).turns[0].question.tokens == 1024
    lines(folder / "t.jsonl", MOONCAKE[:1])
    assert Workload(load(folder), "n").session(1).turns[0].question.tokens == 1100


def test_times_and_lengths_that_the_trace_does_not_tell_are_asked_for(folder: Path) -> None:
    lines(folder / "m.jsonl", [chat(("user", "hello"))])
    assert "does not tell when requests were sent; give times: none" in complaint(folder, trace="m.jsonl")
    assert "does not tell how long all answers are; give output_tokens" in complaint(
        folder, trace="m.jsonl", times="none"
    )
    assert load(folder, trace="m.jsonl", times="none", output_tokens=5)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"times": "scaled"}, "times: scaled and speed belong together"),
        ({"speed": 2.0}, "times: scaled and speed belong together"),
        ({"times": "scaled", "speed": 0}, "key speed: expected a number above 0"),
        ({"times": "now"}, "key times: expected one of trace, scaled, none"),
        ({"block_tokens": 0}, "key block_tokens: expected a whole number of at least 1"),
        ({"system_tokens": 9}, "system_tokens has no effect in a replay"),
        ({"replies": "live"}, "replies has no effect in a replay"),
        ({"think_time_s": 1.0}, "think_time_s has no effect in a replay"),
        ({"sharing": 0.5}, "sharing has no effect in a replay"),
        ({"pressure": 2.0}, "pressure has no effect in a replay"),
        ({"running_sessions": 2}, "running_sessions has no effect in a replay"),
        ({"fault": {"kind": "tools-shuffled"}}, "tools-shuffled makes no sense for this kind"),
        ({"traces": "x"}, "key traces: unknown key; did you mean trace?"),
    ],
)
def test_a_key_that_cannot_be_is_told(folder: Path, keys: dict[str, object], told: str) -> None:
    assert told in complaint(folder, **keys)
