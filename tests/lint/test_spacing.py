"""White space of an earlier prompt is taken over: all of it to tell what is lost, only what is harmless to fix."""

from __future__ import annotations

import pytest

from harness.lint.segments import Segment
from harness.lint.spacing import with_spacing_of

LINE = "This line has more than forty characters, so it was wrapped"


def spaced(before: str, now: str, only_harmless: bool) -> str:
    path = ("messages", 0, "content")
    (done,) = with_spacing_of((Segment(path, "user", before),), (Segment(path, "user", now),), only_harmless)
    return done.text


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Be brief.", "Be brief.\n"),
        ("Be brief.  \nNow.", "Be brief.\nNow."),
        ("Be brief.\r\nNow.", "Be brief.\nNow."),
        ("Be brief.\n\nNow.", "Be brief.\n\n\n\nNow."),
        ("\nBe brief.", "Be brief."),
        ("Be  brief, now.", "Be brief, now."),
        (f"{LINE} here.", f"{LINE}\nhere."),
        (f"{LINE}\nhere.", f"{LINE} here."),
        ('See {"a": 1, "b": [2]} now.', 'See {\n "a": 1,\n "b": [2]\n} now.'),
        ("```\na = 1  \nb = 2\n```", "```\na = 1\nb = 2\n```\n"),
        ("At 10:00\n\n\nwe met.  ", "At 11:30\n\nwe met."),
    ],
)
def test_what_is_harmless(before: str, now: str) -> None:
    assert spaced(before, now, only_harmless=True) == spaced(before, now, only_harmless=False) != now
    if "10:00" not in before:
        assert spaced(before, now, only_harmless=True) == before


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Three colours: red blue", "Three colours:\nred\nblue"),
        (f"{LINE} - here", f"{LINE}\n- here"),
        (f"{LINE} 2. here", f"{LINE}\n2. here"),
        (f"# {LINE} here", f"# {LINE}\nhere"),
        (f"{LINE}\n\nhere", f"{LINE}\nhere"),
        ("if a:\n        b", "if a:\n    b"),
        ("    indented", "indented"),
        ("say 'x  y' now", "say 'x y' now"),
        ("```\na  b\n```", "```\na b\n```"),
        (f"```\n{LINE} here\n```", f"```\n{LINE}\nhere\n```"),
    ],
)
def test_what_might_mean_something(before: str, now: str) -> None:
    assert spaced(before, now, only_harmless=False) == before
    assert spaced(before, now, only_harmless=True) == now


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("one  two three", "one two four  five", "one  two four  five"),
        ("note book", "notebook", "notebook"),
        ("notebook", "note book", "note book"),
        ("a b", "a  c", "a  c"),
        ('{"a": 1} b', '{"a":1}b', '{"a": 1}b'),
        ("one two", "one  two  three", "one two  three"),
    ],
)
def test_the_first_other_word_ends_it(before: str, now: str, expected: str) -> None:
    assert spaced(before, now, only_harmless=False) == expected
