"""Numbers as people write them, and cards by name."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from harness.errors import InputError
from harness.kv_size.cards import CARDS, card_bytes
from harness.kv_size.quantity import parameters, share, size_in_bytes, whole


def test_whole_numbers() -> None:
    assert [whole("--tokens", text) for text in ("32768", "32,768", "1_000")] == [32768, 32768, 1000]


def test_sizes() -> None:
    written = {
        "16GB": 16 * 10**9,
        "16GiB": 16 * 2**30,
        "1.5 gib": 3 * 2**29,
        "100": 100,
        "24gb": 24 * 10**9,
        "1TB": 10**12,
    }
    assert {text: size_in_bytes("--weights", text) for text in written} == written
    assert [parameters("--parameters", text) for text in ("8B", "0.6b", "600M", "1000")] == [
        8 * 10**9,
        6 * 10**8,
        6 * 10**8,
        1000,
    ]


def test_shares() -> None:
    assert [share("--usable", text) for text in ("0.9", ".5", "1")] == [Fraction(9, 10), Fraction(1, 2), Fraction(1)]


def test_cards() -> None:
    assert card_bytes("rtx-4090") == card_bytes("RTX 4090") == 24564 * 2**20
    assert card_bytes("24GiB") == 24 * 2**30
    assert CARDS["mi300x"] == 206_141_652_992


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *[(whole, text) for text in ("0", "-1", "1.5", "many", "1e3", "٣", "")],
        *[(size_in_bytes, text) for text in ("0GB", "-1GB", "16 apples", "GB", "1e9", "")],
        *[(parameters, text) for text in ("8X", "-8B", "B")],
        *[(share, text) for text in ("0", "1.01", "-0.5", "90%", "nan", "")],
        *[(lambda _, text: card_bytes(text), text) for text in ("toaster", "24 parsecs")],
    ],
)
def test_what_is_none(read: Callable[[str, str], object], text: str) -> None:
    with pytest.raises(InputError) as caught:
        read("--flag", text)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_card_that_is_nearly_known() -> None:
    with pytest.raises(InputError, match="did you mean rtx-4090"):
        card_bytes("rtx4090")
