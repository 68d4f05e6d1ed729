"""What is moved with a time or an id, and what it leaves behind: JSON stays JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.lint.segments import ChatPrompt
from tests.lint.logs import lint_of, log_of
from tests.lint.texts import RULES, chat, tool


def rearranged(folder: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = lint_of(folder, rows)
    prompts: list[ChatPrompt] = [request.prompt for request in log_of(folder, rows).requests]
    return [prompt.to_body() for prompt in found.remedies.arrange(prompts)]


@pytest.mark.parametrize(
    ("text", "left", "moved"),
    [
        ("Time: {}\n" + RULES, RULES, "Time: {}"),
        ("Be brief. It is {} now. " + RULES, "Be brief. " + RULES, "It is {} now."),
        ("[now={}] " + RULES, RULES, "[now={}]"),
        ("Rules of {} " + "and so on " * 20 + RULES, "Rules of  " + "and so on " * 20 + RULES, "{}"),
        (RULES + "\n\nSeen: {}\n\n" + RULES, RULES + "\n\n\n" + RULES, "Seen: {}"),
    ],
    ids=["line", "sentence", "brackets", "nothing but itself", "line between paragraphs"],
)
def test_what_is_moved(text: str, left: str, moved: str, tmp_path: Path) -> None:
    times = ["10:15:30", "10:16:02"]
    bodies = rearranged(tmp_path, [chat(text.format(time), "Why?") for time in times])
    assert [body["messages"][0]["content"] for body in bodies] == [left, left]
    assert [body["messages"][1]["content"] for body in bodies] == [f"Why?\n{moved.format(time)}" for time in times]


def test_out_of_a_tool(tmp_path: Path) -> None:
    rows = [
        chat(RULES, "Why?", tools=[tool("find", f"Finds.\nRead at {time}.\nUse it \x00 often: é\\n.", what="Anything")])
        for time in ("2026-03-04T10:15", "2026-03-05T08:00")
    ]
    bodies = rearranged(tmp_path, rows)
    assert bodies[0]["tools"] == bodies[1]["tools"]
    assert bodies[0]["tools"][0]["function"]["description"] == "Finds.\nUse it \x00 often: é\\n."
    assert bodies[1]["messages"][1]["content"].startswith("Why?\nRead at 2026-03-05T08:00.")


def test_out_of_a_text_that_is_json(tmp_path: Path) -> None:
    rows = [chat(json.dumps({"n": 4000 + n, "at": f"né {n}7:15", "rules": RULES}), "Why?") for n in range(2)]
    bodies = rearranged(tmp_path, rows)
    settings = [json.loads(body["messages"][0]["content"]) for body in bodies]
    assert settings[0] == settings[1]
    assert settings[0]["n"] == 0
    assert settings[0]["rules"] == RULES


def test_a_message_that_loses_all_of_its_text_is_left_out(tmp_path: Path) -> None:
    rows = [
        {"messages": [{"role": "system", "content": f"Time: 10:0{n}"}, *chat(RULES, "Why?")["messages"]]}
        for n in range(2)
    ]
    bodies = rearranged(tmp_path, rows)
    assert [[one["role"] for one in body["messages"]] for body in bodies] == [["system", "user"]] * 2
    assert bodies[1]["messages"][1]["content"] == "Why?\nTime: 10:01"


def test_the_same_words_further_down_stay(tmp_path: Path) -> None:
    """Only the message in which a time was found to change is changed."""
    rows = [chat(f"Time: 10:0{n}\n{RULES}", "Time: 9:00\nHello", "Hello.", "Why?") for n in range(2)]
    bodies = rearranged(tmp_path, rows)
    assert [body["messages"][1]["content"] for body in bodies] == ["Time: 9:00\nHello"] * 2
