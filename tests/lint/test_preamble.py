"""When text that stands behind a difference is worth standing first."""

from __future__ import annotations

import json
from pathlib import Path

from tests.lint.logs import kinds_of, lint_of
from tests.lint.texts import MANUAL, PASSAGES, PROFILES, QUESTIONS, RULES, chat

SHARED = " ".join(PASSAGES[:3])
"""Some 330 characters."""


def test_what_all_share_must_be_long(tmp_path: Path) -> None:
    for shared, expected in ((SHARED, {"preamble-first"}), (PASSAGES[0], set())):
        rows = [chat("Be brief.", f"For {name}.\n{shared}\n{QUESTIONS[0]}") for name in ("Ann", "Omar")]
        assert kinds_of(lint_of(tmp_path, rows)) == expected


def test_what_differs_may_not_be_longer_than_what_all_share(tmp_path: Path) -> None:
    """Two documents, and an instruction behind each: the documents are what the requests are about."""
    short, long = (
        " ".join(text.replace(".", f" {end}.") for text in PROFILES[:count]) for count, end in ((2, "a"), (4, "b"))
    )
    for documents, expected in (((short, short[::-1]), {"preamble-first"}), ((long, long[::-1]), set())):
        rows = [chat("Be brief.", f"{document}\n{SHARED}") for document in documents]
        assert kinds_of(lint_of(tmp_path, rows)) == expected


def test_what_all_share_must_be_a_tenth_of_the_prompt(tmp_path: Path) -> None:
    for rest, expected in ((MANUAL, {"preamble-first"}), (f"{MANUAL}\n" * 8, set())):
        rows = [chat(f"{rest}\n{name}\n{SHARED}", QUESTIONS[0]) for name in ("For Ann.", "For Omar.")]
        assert kinds_of(lint_of(tmp_path, rows)) == expected


def test_answers_are_where_they_are(tmp_path: Path) -> None:
    """What follows the first answer cannot stand before it."""
    rows = [chat("Be brief.", name, "Yes?", f"{RULES}\n{QUESTIONS[0]}") for name in ("I am Ann.", "I am Omar.")]
    assert kinds_of(lint_of(tmp_path, rows)) == set()


def test_many_values_close_to_each_other_are_two_texts(tmp_path: Path) -> None:
    """A table of numbers, and a text behind it: four may be a header, six are what the request is about."""
    names = ("rain", "wind", "frost", "cloud", "snow", "hail")
    for count, expected in ((3, {"request-id-first"}), (6, set())):
        tables = [
            "\n".join(f"{name} {seed * (place + 7)}" for place, name in enumerate(names[:count])) for seed in (3, 5)
        ]
        rows = [chat("Be brief.", f"{table}\n{PASSAGES[0]}") for table in tables]
        assert kinds_of(lint_of(tmp_path, rows)) == expected


def test_the_number_of_a_customer_is_a_part_of_what_is_told_of_the_customer(tmp_path: Path) -> None:
    told = ("Customer 4411.\nAnn rides to work.", "Customer 5823.\nOmar races at weekends.")
    rows = [chat("Be brief.", f"{text}\n{SHARED}") for text in told]
    assert kinds_of(lint_of(tmp_path, rows)) == {"preamble-first"}


def test_records_of_two_customers_are_not_one_record(tmp_path: Path) -> None:
    records = ({"name": "Ann", "city": "Lyon"}, {"city": "Porto", "name": "Omar"})
    rows = [chat("Be brief.", f"{json.dumps(record)}\n{SHARED}") for record in records]
    assert kinds_of(lint_of(tmp_path, rows)) == {"preamble-first"}


def test_white_space_within_what_all_share_is_put_right_too(tmp_path: Path) -> None:
    texts = (f"For Ann.\n{MANUAL}", "For Omar.\n" + MANUAL.replace("\n", "  \n"))
    found = lint_of(tmp_path, [chat("Be brief.", text) for text in texts])
    assert kinds_of(found) == {"preamble-first", "whitespace-changed"}
    assert found.after.hit_tokens > len(MANUAL) // 4
