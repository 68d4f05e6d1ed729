"""Whatever stands in the prompts, lint comes to an end, and its figures can be true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.lint.finding import lint
from harness.lint.fixing import fixed
from harness.lint.plain import plain
from harness.lint.tokens import by_text
from tests.lint.logs import log_of
from tests.lint.test_fixing import assert_same_meaning

PIECES = st.sampled_from(
    [
        *(
            "10:15 ",
            "2026-03-04",
            "id-7f3a ",
            "Be brief. ",
            "\n",
            "\n\n",
            "  ",
            "\r\n",
            "\t",
            "[1] ",
            "- ",
            "<doc>",
            "</doc>",
        ),
        *(
            "{",
            "}",
            '{"a": 1, "b": [2]}',
            '{"b": [2],"a": 1}',
            '"',
            "\\",
            "```\n",
            "#",
            "é",
            "規則。",
            "😀",
            "\x00",
            "x" * 90,
        ),
        *("The same words come again and again in this sentence. ", "Other words stand in this one, and in no other. "),
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
CONTENTS: st.SearchStrategy[Any] = (
    TEXTS | st.none() | st.lists(TEXTS.map(lambda text: {"type": "text", "text": text}), min_size=1, max_size=3)
)
CALLS = st.builds(
    lambda name, arguments: {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}},
    st.sampled_from(["find", "10:15"]),
    TEXTS,
)
MESSAGES = st.builds(
    lambda role, content, calls: {"role": role, "content": content, **({"tool_calls": calls} if calls else {})},
    st.sampled_from(["system", "user", "assistant", "tool"]),
    CONTENTS,
    st.lists(CALLS, max_size=1),
)
TOOLS = st.builds(
    lambda name, about: {"type": "function", "function": {"name": name, "description": about}},
    st.sampled_from(["a", "b", "c"]),
    TEXTS,
)
REQUESTS = st.builds(
    lambda messages, tools: {"messages": messages, **({"tools": tools} if tools else {})},
    st.lists(MESSAGES, min_size=1, max_size=4),
    st.lists(TOOLS, max_size=3),
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(REQUESTS, min_size=1, max_size=5))
def test_anything(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    log = log_of(tmp_path, rows)
    found = lint(log, by_text())
    assert 0 <= found.now.hit_tokens < found.now.prompt_tokens
    assert found.now.hit_tokens <= found.after.hit_tokens < found.after.prompt_tokens
    for problem in found.problems:
        for finding in problem.findings:
            assert finding.earlier < finding.request
            assert finding.lost_tokens > 0
            assert 0 <= finding.token < found.now.prompt_tokens
    json.dumps(plain(found), allow_nan=False)
    result = fixed(log, found, by_text())
    assert result.after.hit_tokens >= result.now.hit_tokens
    for row, prompt in zip(rows, result.prompts, strict=True):
        assert_same_meaning(row, prompt.to_body())
    for prompt in found.remedies.arrange([request.prompt for request in log.requests]):
        json.dumps(prompt.to_body())
