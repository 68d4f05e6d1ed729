"""What --fix writes: the same words, the same JSON, and never less reuse."""

from __future__ import annotations

import json
import random
import re
import textwrap
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.lint.finding import OfKind, lint
from harness.lint.fixing import fixed, write_fixed
from harness.lint.reading import read_log
from harness.lint.tokens import by_text
from tests.lint.labelled_faults import FAULTS
from tests.lint.labelled_harmless import HARMLESS
from tests.lint.labelled_order import other_key_order
from tests.lint.logs import kinds_of, lint_of, log_of, written
from tests.lint.test_finding import GROWING
from tests.lint.texts import MANUAL, PASSAGES, QUESTIONS, RULES, TOOLS, chat

SETS = {**{name: requests for name, (_, requests) in FAULTS.items()}, **HARMLESS}


def fix(folder: Path, rows: list[Any]) -> tuple[list[Any], int, int]:
    """The rows as --fix writes them, and the hit tokens before and after."""
    log = log_of(folder, rows)
    found = lint(log, by_text())
    result = fixed(log, found, by_text())
    out = folder / "fixed.jsonl"
    write_fixed(log, result, out, [folder / "log.jsonl"])
    return [json.loads(line) for line in out.read_text().splitlines()], result.now.hit_tokens, result.after.hit_tokens


def letters(text: str) -> Counter[str]:
    return Counter(re.sub(r"\s", "", text))


def sorted_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def texts(request: dict[str, Any]) -> list[str]:
    found = []
    for message in request["messages"]:
        content = message.get("content") or ""
        found += [content] if isinstance(content, str) else [part["text"] for part in content]
        found += [call["function"]["arguments"] for call in message.get("tool_calls", ())]
    return found


def assert_same_meaning(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert {key: value for key, value in before.items() if key not in ("messages", "tools")} == {
        key: value for key, value in after.items() if key not in ("messages", "tools")
    }
    assert sorted(map(sorted_json, before.get("tools", ()))) == sorted(map(sorted_json, after.get("tools", ())))
    assert len(before["messages"]) == len(after["messages"])
    for one, other in zip(texts(before), texts(after), strict=True):
        assert letters(one) == letters(other)
        try:
            value = json.loads(one)
        except ValueError:
            continue
        assert json.loads(other) == value


@pytest.mark.parametrize("name", SETS)
def test_no_word_is_lost_and_no_reuse(name: str, tmp_path: Path) -> None:
    rows, now, after = fix(tmp_path, SETS[name])
    assert after >= now
    assert lint_of(tmp_path, rows).now.hit_tokens == after
    for before, row in zip(SETS[name], rows, strict=True):
        assert_same_meaning(json.loads(json.dumps(before)), row)


@pytest.mark.parametrize("kind", ["tools-shuffled", "keys-shuffled"])
def test_order_is_put_right_wholly(kind: str, tmp_path: Path) -> None:
    for kinds, requests in FAULTS.values():
        if kinds == {kind}:
            rows, now, after = fix(tmp_path, requests)
            assert after > now
            assert not kinds_of(lint_of(tmp_path, rows))


RECORD = {"name": "Ann", "bikes": [{"make": "A", "year": 2011}, {"make": "B", "year": 1e3}], "note": 'say "{[,"'}


def damaged(seed: int) -> list[dict[str, Any]]:
    """Requests that share work, with orders, blanks and wrapping drawn for each."""
    rng = random.Random(seed)

    def spaced(text: str) -> str:
        match rng.randrange(5):
            case 0:
                return textwrap.fill(text, rng.choice([40, 60, 100]))
            case 1:
                return text.replace("\n", "  \n")
            case 2:
                return f"{rng.choice(['', chr(10), '  '])}{text}{rng.choice(['', chr(10), ' ' * 3])}"
            case 3:
                return text.replace(". ", f".{rng.choice([' ' * 2, chr(10) * 2, chr(13) + chr(10)])}")
            case _:
                return text

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            rng.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return [shuffled(one) for one in value] if isinstance(value, list) else value

    texts = [RULES, MANUAL, "\n".join(PASSAGES), "- one\n- two\n  - three", "```\nif a:\n    b = 'x  y'\n```"]
    requests = []
    for number in range(rng.randrange(2, 7)):
        tools = rng.sample(TOOLS, rng.randrange(1, 5)) if rng.random() < 0.7 else list(TOOLS)
        if rng.random() < 0.5:
            tools = shuffled(tools)
        record = json.dumps(shuffled(RECORD) if rng.random() < 0.5 else RECORD, indent=rng.choice([None, 2]))
        system = spaced(rng.choice(texts[:3])) + rng.choice(["", f"\n{record}\n"]) + spaced(rng.choice(texts))
        requests.append(chat(system, rng.choice([spaced(MANUAL), record, ""]) + QUESTIONS[number % 6], tools=tools))
    return requests


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_whatever_the_damage_nothing_is_lost(seed: int, tmp_path: Path) -> None:
    requests = damaged(seed)
    rows, now, after = fix(tmp_path, requests)
    assert after >= now
    assert lint_of(tmp_path, rows).now.hit_tokens == after
    for before, row in zip(requests, rows, strict=True):
        assert_same_meaning(json.loads(json.dumps(before)), row)


def test_what_needs_no_change_stays_as_it_is_to_the_byte(tmp_path: Path) -> None:
    odd = b'{ "messages":[{"role":"user","content":"caf\\u00e9"}],  "seed":1e2, "x": 123456789012345678901234567890 }'
    path = tmp_path / "log.jsonl"
    path.write_bytes(odd + b"\r\n\n" + odd)
    log = read_log(path)
    write_fixed(log, fixed(log, lint(log, by_text()), by_text()), tmp_path / "out.jsonl", [path])
    assert (tmp_path / "out.jsonl").read_bytes() == odd + b"\n" + odd + b"\n"


def test_what_stands_around_a_request_stays(tmp_path: Path) -> None:
    changed = {"tools": other_key_order(TOOLS), **chat(RULES, QUESTIONS[1])}
    rows = [
        {"id": 1, "request": chat(RULES, QUESTIONS[0], tools=TOOLS)},
        {"id": 2, "body": json.dumps(changed), "status": 200},
    ]
    written_rows, _, _ = fix(tmp_path, rows)
    assert [sorted(row) for row in written_rows] == [["id", "request"], ["body", "id", "status"]]
    assert json.loads(written_rows[1]["body"])["tools"] == TOOLS
    assert json.dumps(json.loads(written_rows[1]["body"])["tools"]) == json.dumps(written_rows[0]["request"]["tools"])


def test_times_and_what_has_an_order_of_its_own_are_left(tmp_path: Path) -> None:
    for name in ("iso_time_in_the_first_line", "passages_as_parts", "customer_before_the_rules", "counter_of_requests"):
        requests = FAULTS[name][1]
        assert fix(tmp_path, requests)[0] == json.loads(json.dumps(requests))


def test_indentation_and_lists_are_not_joined(tmp_path: Path) -> None:
    code = f"{RULES}\n```\nif a:\n    b()\nc()\n```\n{MANUAL}"
    other = code.replace("    b()\nc()", "    b()\n    c()")
    rows = [chat(code, QUESTIONS[0]), chat(other, QUESTIONS[1])]
    assert kinds_of(lint_of(tmp_path, rows)) == {"whitespace-changed"}
    assert fix(tmp_path, rows)[0] == rows


def test_the_log_itself_is_never_written_to(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", [chat(RULES, QUESTIONS[0])])
    log = read_log(path)
    result = fixed(log, lint(log, by_text()), by_text())
    with pytest.raises(InputError, match="is the file that is read"):
        write_fixed(log, result, tmp_path / "." / "log.jsonl", [path])
    with pytest.raises(InputError, match="cannot be written"):
        write_fixed(log, result, tmp_path / "no" / "out.jsonl", [path])


def test_what_would_cost_others_more_is_not_done(tmp_path: Path) -> None:
    log = log_of(tmp_path, GROWING)
    found = lint(log, by_text())
    forced = replace(found, kinds=[OfKind("tools-shuffled", 1, 20, found.now)])
    assert found.remedies.fix([request.prompt for request in log.requests], ["tools-shuffled"]) != [
        request.prompt for request in log.requests
    ]
    result = fixed(log, forced, by_text())
    assert (result.changed, result.after) == ({"tools-shuffled": 0}, found.now)
