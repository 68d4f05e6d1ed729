"""What lint reads: logs in the shapes that people have, and two prompts. Bad input is one sentence with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from harness.lint.reading import read_log, read_pair
from tests.lint.logs import written

MESSAGES = [{"role": "user", "content": "Why?"}]
BODY = {"model": "m", "messages": MESSAGES, "temperature": 0.5}


@pytest.mark.parametrize(
    "row",
    [
        BODY,
        MESSAGES,
        {"time": 5, "request": BODY},
        {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": BODY},
        {"request": None, "body": json.dumps(BODY), "response": {"messages": 1}},
    ],
    ids=["body", "messages", "request", "body of a batch", "body as text"],
)
def test_a_line_of_a_log(row: Any, tmp_path: Path) -> None:
    log = read_log(written(tmp_path / "log.jsonl", [row, BODY]))
    assert [request.source for request in log.requests] == ["line 1", "line 2"]
    assert [(one.role, one.text, one.place) for one in log.requests[0].prompt.segments] == [
        ("user", "Why?", "messages[0] (user)")
    ]


def test_everything_that_a_template_shows_is_a_segment(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"b": 1}'}}
    body = {
        "tools": [{"type": "function", "function": {"name": "find"}}, {"name": "flat"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "found", "tool_call_id": "c1"},
        ],
    }
    prompt = read_log(written(tmp_path / "log.jsonl", [body])).requests[0].prompt
    assert [(one.place, one.text) for one in prompt.segments] == [
        ("tools[0] (find)", '{"type":"function","function":{"name":"find"}}'),
        ("tools[1] (flat)", '{"name":"flat"}'),
        ("messages[0] (user), content[0]", "one"),
        ("messages[0] (user), content[1]", "two"),
        ("messages[1] (assistant)", ""),
        ("messages[1] (assistant), tool_calls[0]", '{"id":"c1","type":"function","function":{"name":"find"}}'),
        ("messages[1] (assistant), tool_calls[0]", '{"b": 1}'),
        ("messages[2] (tool)", "found"),
    ]
    assert prompt.to_body() == body
    assert [one.text for one in prompt.chat()][:2] == [
        '[{"type":"function","function":{"name":"find"}},{"name":"flat"}]',
        "onetwo",
    ]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "not valid JSON"),
        ("5", "expected a JSON object, found 5"),
        ('{"input": "x"}', "the key messages is missing, and there is no request or body that could have it"),
        ('{"messages": []}', "messages is empty"),
        ('{"messages": "x"}', 'messages is "x"; expected a list'),
        ('{"messages": ["x"]}', 'messages[0] is "x"; expected an object with role and content'),
        ('{"messages": [{"content": "x"}]}', "the key role is missing in messages[0]"),
        ('{"messages": [{"role": "user", "content": 5}]}', "messages[0].content holds something that is not text"),
        ('{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', "whose length cannot be told"),
        ('{"messages": [{"role": "user", "tool_calls": 5}]}', "tool_calls is 5; expected a list"),
        ('{"messages": [{"role": "user", "tool_calls": [5]}]}', "messages[0].tool_calls holds 5; expected objects"),
        ('{"messages": [{"role": "user", "content": ""}], "tools": {"a": 1}}', "tools is an object; expected a list"),
        ('{"messages": [{"role": "user", "content": ""}], "model": 5}', "model is 5; expected a text"),
        ('{"body": "{"}', "body: not valid JSON"),
        ('{"request": [1]}', "request is a list; expected an object with messages"),
        ('{"request": {"input": "x"}}', "the key messages is missing, and there is no prompt"),
        ('{"prompt": [1, 2]}', "the prompt is no text"),
        ('{"prompt": ""}', "the prompt is empty"),
    ],
)
def test_a_line_that_cannot_be_used(line: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{json.dumps(BODY)}\n\n{line}\n")
    with pytest.raises(InputError) as caught:
        read_log(path)
    assert str(caught.value).startswith(f"{path}, line 3: ")
    assert sentence in str(caught.value)
    log = read_log(path, skip_bad=True)
    assert (len(log.requests), log.skipped.entries) == (1, 1)


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_log_without_requests(content: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match="holds no requests"):
        read_log(path)


def test_two_prompts_are_texts_or_chats(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("{not JSON")
    (tmp_path / "b.txt").write_text('{"json": "but no request"}')
    texts = read_pair(tmp_path / "a.txt", tmp_path / "b.txt").requests
    assert [one.prompt.segments[0].text for one in texts] == ["{not JSON", '{"json": "but no request"}']
    assert [one.source for one in texts] == ["a.txt", "b.txt"]
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(BODY if name == "a.json" else MESSAGES, indent=1))
    chats = read_pair(tmp_path / "a.json", tmp_path / "b.json").requests
    assert chats[0].prompt.segments == chats[1].prompt.segments
    assert chats[0].cache == chats[1].cache


def test_two_prompts_that_cannot_be_compared(tmp_path: Path) -> None:
    files = {
        "chat.json": json.dumps(BODY),
        "other.json": json.dumps({**BODY, "model": "n"}),
        "log.jsonl": json.dumps(BODY) + "\n" + json.dumps(BODY),
        "text": "Why?",
        "empty": " ",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for names, sentence in {
        ("chat.json", "other.json"): "share no cache: model is m in one, and n in the other",
        ("chat.json", "text"): "is a chat, the other a text",
        ("chat.json", "log.jsonl"): "two files are two prompts, each one JSON object or a text",
        ("text", "empty"): "is empty; expected a prompt",
        ("text", "binary"): "not UTF-8 at byte 0",
        ("text", "missing"): "there is no such file",
    }.items():
        with pytest.raises(InputError, match=sentence):
            read_pair(*(tmp_path / name for name in names))
