"""What cannot be used is told in one sentence with file and place, or left out and counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from harness.traces.reading import read_trace
from tests.traces.written import MOONCAKE, agentic, call, chat, lines

GOOD: dict[str, Any] = MOONCAKE[2]


def changed(**keys: object) -> str:
    """The last good line with other values; ... removes a key."""
    return json.dumps({key: value for key, value in {**GOOD, **keys}.items() if value is not ...})


BAD_LINES = {
    "decreasing time": (changed(timestamp=1499), "timestamp goes back from 1.5 s to 1.499 s"),
    "negative time": (changed(timestamp=-1), "timestamp is -1; expected a number, 0 or more"),
    "time of no kind": (changed(timestamp="now"), 'timestamp is "now"'),
    "time not known": (changed(timestamp=None), "timestamp is not known here"),
    "no input": (changed(input_length=0, hash_ids=[]), "input_length is 0; expected a whole number, 1 or more"),
    "negative input": (changed(input_length=-600), "input_length is -600"),
    "fractional input": (changed(input_length=600.5), "input_length is 600.5"),
    "truth as input": (changed(input_length=True, hash_ids=[1]), "input_length is true"),
    "no output": (changed(output_length=0), "output_length is 0"),
    "negative output": (changed(output_length=-3), "output_length is -3"),
    "too few ids": (changed(hash_ids=[0]), "takes 2 blocks of 512 tokens, but hash_ids has 1"),
    "too many ids": (changed(hash_ids=[0, 3, 4]), "takes 2 blocks of 512 tokens, but hash_ids has 3"),
    "ids of no kind": (changed(hash_ids=[0, "x"]), 'hash_ids holds "x"'),
    "ids too large": (changed(hash_ids=[0, 2**64]), "expected whole numbers below 2^64"),
    "no list": (changed(hash_ids=7), "hash_ids is 7; expected a list"),
    "missing key": (changed(output_length=...), "the key output_length is missing"),
    "missing ids": (changed(hash_ids=...), "the key hash_ids is missing"),
    "unknown key": (changed(hashids=[1]), 'unknown key "hashids"; did you mean hash_ids?'),
    "list": ("[1, 2]", "expected a JSON object, found a list"),
    "cut off": (changed()[:40], "not valid JSON"),
    "not a number": (changed(timestamp=float("nan")), "not valid JSON"),
    "junk": ("\x00\x01\x7f\x1b", "not valid JSON"),
}


def with_line(path: Path, line: str) -> Path:
    lines(path, MOONCAKE)
    path.write_text(path.read_text() + f"\n{line}\n{json.dumps(GOOD)}\n")
    return path


@pytest.mark.parametrize(("line", "words"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_named(tmp_path: Path, line: str, words: str) -> None:
    path = with_line(tmp_path / "t.jsonl", line)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}, line 5: ")  # the blank line counts
    assert words in sentence
    assert "--skip-bad-lines" in sentence
    assert "\n" not in sentence
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("line", "words"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_can_be_left_out(tmp_path: Path, line: str, words: str) -> None:
    trace = read_trace(with_line(tmp_path / "t.jsonl", line), skip_bad=True)
    assert len(trace.requests) == len(MOONCAKE) + 1
    assert trace.skipped.entries == 1
    assert trace.skipped.first is not None
    assert trace.skipped.first.startswith("line 5: ")
    assert words in trace.skipped.first


def test_a_bad_first_line_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"\xff\xfe\x00junk\n" + b"".join(json.dumps(row).encode() + b"\n" for row in MOONCAKE))
    assert len(read_trace(path, skip_bad=True).requests) == len(MOONCAKE)
    with pytest.raises(InputError, match="line 1: not valid JSON"):
        read_trace(path)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no requests"),
        (b"\n  \n", "holds no requests"),
        (bytes(range(256)) * 8, "not valid JSON"),
        (b'{"a": 1}\n', "not a request of a known format"),
        (b"[]", "not a request of a known format"),
        (b'{\n"id": "s",\n"requests": [', "line 3: not valid JSON"),
        (b'{"id": "s", "block_size": 64, "requests": []}', "holds no requests"),
        (b'{"id": "s", "block_size": 0, "requests": []}', "block_size is 0"),
        (b'{"id": "s", "block_size": 64, "requests": [], "extra": 1}', 'unknown key "extra"'),
        (b'{"block_size": 64, "requests": []}', "the key id is missing"),
    ],
)
def test_a_file_without_anything_to_use(tmp_path: Path, content: bytes, words: str, skip: bool) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_trace(path, skip_bad=skip)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_trace(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path)


BAD_CALLS = {
    "decreasing time": (call(1, 64, [1]), "t goes back"),
    "no input": (call(9, 0, []), "in is 0"),
    "too few ids": (call(9, 200, [1, 2]), "has 3 full blocks of 64 tokens, but hash_ids has 2"),
    "unknown key": (call(9, 64, [1], hash_id=[1]), 'unknown key "hash_id"'),
    "no object": (7, "expected a JSON object, found 7"),
    "sub-agent without requests": ({"t": 1, "agent_id": "a"}, "missing"),
}


@pytest.mark.parametrize(("bad", "words"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_request_of_an_agent_is_named_or_left_out(tmp_path: Path, bad: object, words: str) -> None:
    path = agentic(tmp_path / "t.json", [call(0, 64, [1]), call(5, 64, [1]), bad, call(9, 64, [1])])
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}, requests[2]: ")
    assert words in str(caught.value)
    trace = read_trace(path, skip_bad=True)
    assert len(trace.requests) == 3
    assert trace.skipped.entries == 1


def test_a_bad_request_of_a_sub_agent_has_its_place(tmp_path: Path) -> None:
    sub = {"t": 9, "agent_id": "a", "duration_ms": 1000, "requests": [call(0, 64, [1]), call(1, -1, [])]}
    path = agentic(tmp_path / "t.json", [call(0, 64, [1]), sub])
    with pytest.raises(InputError, match=r"requests\[1\]\.requests\[1\]: in is -1"):
        read_trace(path)


def test_a_sub_agent_that_nobody_starts(tmp_path: Path) -> None:
    sub = {"t": 9, "agent_id": "a", "duration_ms": 1000, "requests": [call(0, 64, [1])]}
    with pytest.raises(InputError, match="before the first request of its parent"):
        read_trace(agentic(tmp_path / "t.json", [sub]))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"messages": []}, "messages is empty"),
        ({"messages": "hello"}, "expected a list"),
        ({"messages": [{"content": "x"}]}, r"the key role is missing in messages\[0\]"),
        ({"messages": ["x"]}, r"messages\[0\] is \"x\"; expected an object"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "not text"),
        (chat(("user", "x"), temprature=1), "did you mean temperature"),
        (chat(("user", "x"), max_tokens=0), "max_tokens is 0"),
    ],
)
def test_a_bad_chat_is_named(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    path = lines(tmp_path / "t.jsonl", [chat(("user", "x")), row])
    with pytest.raises(InputError, match=f"line 2: .*{words}"):
        read_trace(path)
