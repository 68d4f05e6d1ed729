"""Where a difference is and what it costs, worked out by hand; tokens are four bytes, a message has 3 + 2 around it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.lint.finding import lint
from harness.lint.reading import read_pair
from harness.lint.reuse import Cache
from harness.lint.tokens import by_text
from tests.lint.logs import kinds_of, lint_of, log_of
from tests.lint.texts import MANUAL, QUESTIONS, RULES, TOOLS, chat, tool

TIMED = [chat(f"At 10:0{n}\n{'x' * 400}\n", "Why?") for n in range(3)]


def test_place_and_price_of_a_time(tmp_path: Path) -> None:
    found = lint_of(tmp_path, TIMED)
    (problem,) = found.problems
    assert [(one.request, one.earlier) for one in problem.findings] == [(1, 0), (2, 1)]
    worst = problem.worst
    assert (worst.kind, worst.place, worst.message) == ("timestamp-first", "messages[0] (system)", 0)
    # "At 10:0" is the same; 3 tokens stand before the message, "At 1" is one, "0:01" another.
    assert (worst.character, worst.token) == (7, 3 + 1)
    # Without the line: 3 + 101 (401 bytes) + 2, then 3, and of "Why?\nAt 10:01" three tokens.
    assert worst.lost_tokens == 3 + 101 + 2 + 3 + 3 - 4
    assert [(one.before, one.differing) for one in worst.excerpts] == [("At 10:0", "0"), ("At 10:0", "1")]
    assert '"At 10:01" out of messages[0] (system)' in worst.order
    (of_kind,) = found.kinds
    assert (of_kind.requests, of_kind.lost_tokens) == (2, problem.lost_tokens)


def test_hit_rates_are_those_of_the_model(tmp_path: Path) -> None:
    found = lint_of(tmp_path, TIMED)
    # A prompt: 3 + 103 (410 bytes) + 2, 3 + 1 + 2, 3; two of three share 4 tokens.
    assert (found.now.prompt_tokens, found.now.hit_tokens) == (3 * 117, 2 * 4)
    assert found.after.hit_tokens == 2 * (4 + found.problems[0].worst.lost_tokens)
    in_blocks = lint(log_of(tmp_path, TIMED), by_text(), Cache(16))
    assert (in_blocks.now.hit_tokens, in_blocks.after.hit_tokens) == (0, 2 * (112 // 16 * 16))


def test_what_loses_less_than_a_block_is_not_named(tmp_path: Path) -> None:
    def rows(behind: int) -> list[dict[str, object]]:
        return [chat(f"At 10:0{n}\n{'x' * behind}") for n in range(2)]

    assert kinds_of(lint_of(tmp_path, rows(40))) == set()
    assert kinds_of(lint_of(tmp_path, rows(80))) == {"timestamp-first"}
    assert kinds_of(lint(log_of(tmp_path, rows(80)), by_text(), Cache(64))) == set()


def test_what_loses_less_than_a_hundredth_of_the_prompt_is_not_named(tmp_path: Path) -> None:
    rows = [chat("y" * 16_000, f"At 10:0{n}\n{'x' * 100}") for n in range(2)]
    assert kinds_of(lint_of(tmp_path, rows)) == set()


def test_an_earlier_prompt_with_the_same_time_has_it_all(tmp_path: Path) -> None:
    found = lint_of(tmp_path, [TIMED[0], TIMED[1], TIMED[0], TIMED[1]])
    assert [one.request for problem in found.problems for one in problem.findings] == [1]


def test_each_of_two_differences_is_told_with_what_is_lost_behind_it(tmp_path: Path) -> None:
    rows = [chat(f"It is 10:0{n}.\n{RULES}", QUESTIONS[n], tools=TOOLS[::step]) for n, step in enumerate((1, -1))]
    tools, time = (problem.worst for problem in lint_of(tmp_path, rows).problems)
    assert (tools.kind, tools.place, tools.message) == ("tools-shuffled", "tools[0] (hand_over)", None)
    assert (time.kind, time.character) == ("timestamp-first", len("It is 10:0"))
    assert tools.lost_tokens > time.lost_tokens > len(RULES) // 4 - 2
    # The tools come first: 3 tokens before them, and their JSON.
    assert time.token == 3 + -(-len(json.dumps(TOOLS, separators=(",", ":"))) // 4) + 2 + 3 + 2


def test_the_earlier_request_is_the_one_that_is_most_alike(tmp_path: Path) -> None:
    rows = [chat(f"[{n}{n}aa] {text}", "Why?") for n, text in enumerate((RULES, MANUAL, RULES))]
    (problem,) = lint_of(tmp_path, rows).problems
    assert [(one.request, one.earlier) for one in problem.findings] == [(2, 0)]


def test_a_time_at_the_end_that_the_history_does_not_keep_is_no_fault(tmp_path: Path) -> None:
    turns = [QUESTIONS[0], "Yes.", QUESTIONS[1], "No.", QUESTIONS[2]]
    rows = [
        chat(f"{RULES}\n{MANUAL}", *turns[: length - 1], f"{turns[length - 1]}\n(It is 10:1{length}.)", tools=TOOLS)
        for length in (1, 3, 5)
    ]
    assert kinds_of(lint_of(tmp_path, rows)) == set()


def test_requests_of_different_caches_are_not_compared(tmp_path: Path) -> None:
    rows = [{**row, "cache_salt": f"user-{number}"} for number, row in enumerate(TIMED)]
    found = lint_of(tmp_path, rows)
    assert (found.caches, found.now.hit_tokens, found.problems) == (3, 0, [])


def growing(tools: Sequence[str]) -> dict[str, Any]:
    about = "Looks things up, at length and with care, so that its description has some tokens to lose."
    return chat("Be brief.", "Why?", tools=[tool(name, about) for name in tools])


GROWING = [growing("zyxw"[:count]) for count in (1, 2, 3, 4)] + [growing("zyxwv"), growing("zywxv")]
"""Each tool is added at the end; in the last request two have changed places."""


def test_an_order_that_would_cost_others_more_is_not_proposed(tmp_path: Path) -> None:
    """By name, each new tool would stand first."""
    found = lint_of(tmp_path, GROWING)
    assert found.problems == []
    assert found.after == found.now
    assert kinds_of(lint_of(tmp_path, GROWING[-2:])) == {"tools-shuffled"}


def test_two_texts(tmp_path: Path) -> None:
    for name, minute in (("a.txt", 1), ("b.txt", 2)):
        (tmp_path / name).write_text(f"10:0{minute}\n{RULES}")
    (problem,) = lint(read_pair(tmp_path / "a.txt", tmp_path / "b.txt"), by_text()).problems
    worst = problem.worst
    assert (worst.place, worst.message, worst.character, worst.token) == ("prompt", None, 4, 1)


@pytest.mark.parametrize("count", [0, 1])
def test_one_request_has_nothing_to_be_compared_to(count: int, tmp_path: Path) -> None:
    found = lint_of(tmp_path, TIMED[count : count + 1])
    assert (found.problems, found.now, found.now.hit_tokens) == ([], found.after, 0)
