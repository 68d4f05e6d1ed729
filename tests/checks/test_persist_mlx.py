"""kvswarm persist at mlx-lm's commands, here a stand-in that writes and reads files as they do."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.analysis import load
from harness.checks.persist_mlx import MlxWish, examine_mlx, persist_mlx
from harness.checks.persist_mlx_file import model_identity, read
from harness.checks.persist_mlx_finding import judge
from harness.errors import InputError

STAND_IN = '''#!%s
"""A word is a token; the answer is the last two words of all that it was told; a prompt takes 1 ms a token."""
import json, sys
words = sys.argv[1:]
if words[0] == "-c":
    print("0.32.2 0.32.4"); sys.exit()
given = {word: words[place + 1] for place, word in enumerate(words[:-1]) if word.startswith("--")}
told = sys.stdin.read().split()
if "--prompt-cache-file" in given and words[2] == "generate":
    with open(given["--prompt-cache-file"], "rb") as file:
        size = int.from_bytes(file.read(8), "little"); header = json.loads(file.read(size))
    if header["__metadata__"]["0.model"] != given["--model"]:
        sys.exit("ValueError: Providing a different model")
if words[2] == "cache_prompt":
    bits = given.get("--kv-bits")
    kind = "QuantizedKVCache" if bits else "KVCache"
    numbers = {"0.2": len(told), **({"0.3": int(given["--kv-group-size"]), "0.4": int(bits)} if bits else {})}
    header = {name: {"dtype": "I32", "shape": [], "data_offsets": [4 * place, 4 * place + 4]}
              for place, name in enumerate(numbers)}
    header["__metadata__"] = {"0.model": given["--model"], "0.tokenizer_config": "{}", "1.0": kind, "1.1": kind}
    text = json.dumps(header).encode()
    with open(given["--prompt-cache-file"], "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.write(b"".join(number.to_bytes(4, "little") for number in numbers.values()))
    sys.exit()
print("=" * 10); print(*told[-2:]); print("=" * 10)
print(f"Prompt: {len(told)} tokens, 1000.000 tokens-per-sec")
'''


@pytest.fixture
def python(tmp_path: Path) -> str:
    path = tmp_path / "python"
    path.write_text(STAND_IN % sys.executable)
    path.chmod(0o700)
    return str(path)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (folder / name).write_text(f"what {name} says")
    return folder


def test_the_file_comes_back_and_is_for_its_owner_alone(
    python: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = examine_mlx(MlxWish(model, python, prefix_words=50), tmp_path / "book", str(tmp_path / "runs"), True)
    assert (finding.verdict, finding.exit_code) == ("works", 0)
    assert finding.numbers == {
        "prompt_tokens": 58,
        "restored_computed_tokens": 8,
        "saved_tokens": 50,
        "saved_bytes": finding.numbers["saved_bytes"],
        "saved_in_s": finding.numbers["saved_in_s"],
        "cold_prompt_s": pytest.approx(0.058),
        "restored_prompt_s": pytest.approx(0.008),
        "same_answer": True,
        "kv_bits": None,
        "cache_kinds": "KVCache",
    }
    shown, line = json.loads(capsys.readouterr().out), json.loads((tmp_path / "book").read_text())
    assert shown["verdict"] == line["verdict"] == "works"
    assert line["identity"]["version"] == "mlx-lm 0.32.2, mlx 0.32.4"
    for name in ("prompt-cache.safetensors", "saved.json"):
        assert stat.S_IMODE((Path(line["folder"]) / name).stat().st_mode) == 0o600
    run = load(line["folder"])
    assert (run.manifest.state, run.problems) == ("complete", ())
    assert run.requests["prompt_tokens"].tolist() == [8, 58, 58, 8, 8]
    assert run.measured["warmth"].tolist() == ["cold", "cold", "warm", "warm"]
    assert run.measured["prefill_ms"].tolist() == pytest.approx([58, 58, 8, 8])


def test_it_is_restored_by_a_later_check_and_refused_to_others(python: str, model: Path, tmp_path: Path) -> None:
    results = str(tmp_path / "runs")
    _, saved = persist_mlx(MlxWish(model, python, kv_bits=8, prefix_words=50), results)
    run = saved.folder.path
    again, later = persist_mlx(MlxWish(model, python, kv_bits=8, restore=run), results)
    assert (again.verdict, again.numbers["saved_tokens"], again.numbers["kv_bits"]) == ("works", 50, 8)
    assert persist_mlx(MlxWish(model, python, kv_bits=8, restore=later.folder.path), results)[0].verdict == "works"

    def refused(words: str, **wish: Any) -> None:
        with pytest.raises(InputError, match=words):
            persist_mlx(MlxWish(**{"model": model, "python": python, "kv_bits": 8, "restore": run, **wish}), results)

    refused("kv_bits '8', and here kv_bits is '4'", kv_bits=4)
    refused("kv_bits '8', and here kv_bits is none", kv_bits=None)
    refused("kv_group_size '64', and here kv_group_size is '32'", kv_group_size=32)
    (model / "model.safetensors").write_text("others, as large, here")
    refused("weights")
    (model / "tokenizer.json").write_text("another")
    refused("tokenizer")
    (Path(run) / "prompt-cache.safetensors").unlink()


def test_the_file_itself_is_asked_too(python: str, model: Path, tmp_path: Path) -> None:
    """It may have been replaced since the note was written."""
    results = str(tmp_path / "runs")
    _, one = persist_mlx(MlxWish(model, python, kv_bits=8, prefix_words=50), results)
    _, other = persist_mlx(MlxWish(model, python, prefix_words=50), results)
    file = Path(one.folder.path) / "prompt-cache.safetensors"
    file.write_bytes((Path(other.folder.path) / "prompt-cache.safetensors").read_bytes())
    with pytest.raises(InputError, match="says kv_bits none, and here it is 8"):
        persist_mlx(MlxWish(model, python, kv_bits=8, restore=one.folder.path), results)


def test_a_command_that_fails_is_a_finding(model: Path, python: str, tmp_path: Path) -> None:
    Path(python).write_text(
        f"#!{sys.executable}\nimport sys\nprint(1, 2) if sys.argv[1] == '-c' else sys.exit('no room')"
    )
    finding, run = persist_mlx(MlxWish(model, python), str(tmp_path / "runs"))
    assert (finding.verdict, finding.exit_code) == ("unanswered", 2)
    assert finding.sentence == "mlx_lm.generate ended with code 1: no room."
    assert run.manifest.state == "incomplete"


@pytest.mark.parametrize(
    ("whole", "computed", "held", "verdict"),
    [
        (615, 10, 605, "works"),
        (615, 11, 606, "works"),  # a word was cut in two where the parts meet
        (615, 10, None, "works"),
        (615, 200, 605, "partial"),
        (615, 615, 605, "not-restored"),
        (615, 614, None, "not-restored"),
    ],
)
def test_verdicts(whole: int, computed: int, held: int | None, verdict: str) -> None:
    assert judge(whole, computed, held) == verdict


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 40,
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (23).to_bytes(8, "little") + b'{"__metadata__": {"a":1',
    ],
)
def test_what_is_no_prompt_cache_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(InputError, match="is no prompt cache"):
        read(tmp_path / "c")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read(tmp_path / "c")


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "model.safetensors"])
def test_what_is_no_model_is_refused(missing: str, model: Path) -> None:
    (model / missing).unlink()
    with pytest.raises(InputError, match="is no model that mlx-lm could load"):
        model_identity(model)


def test_an_environment_without_mlx_lm_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no mlx-lm"):
        persist_mlx(MlxWish(model, sys.executable), str(tmp_path))
    with pytest.raises(InputError, match="cannot be run: No such file"):
        persist_mlx(MlxWish(model, "no-such-python"), str(tmp_path))
