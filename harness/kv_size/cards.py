"""Memory of cards, as their drivers report it."""

from __future__ import annotations

from harness.errors import InputError
from harness.expectation import suggestion
from harness.kv_size.quantity import size_in_bytes

MIB = 1024**2
CARDS = {
    "t4": 15360 * MIB,
    "l4": 23034 * MIB,
    "rtx-3090": 24576 * MIB,
    "rtx-4090": 24564 * MIB,
    "rtx-5090": 32607 * MIB,
    "a100-40gb": 40960 * MIB,
    "l40s": 46068 * MIB,
    "rtx-a6000": 49140 * MIB,
    "a100-80gb": 81920 * MIB,
    "h100": 81559 * MIB,
    "rtx-pro-6000": 97887 * MIB,
    "h200": 143771 * MIB,
    "b200": 183359 * MIB,
    "mi300x": 196592 * MIB,
}
"""Bytes in all, less than what the card is sold as where it keeps some for itself, as for ECC."""


def card_bytes(text: str) -> int:
    """Memory of a card given by its name or by its size, in bytes. Raises InputError."""
    name = text.strip().lower().replace(" ", "-").replace("_", "-")
    if name in CARDS:
        return CARDS[name]
    if text.strip()[:1].isdigit():
        return size_in_bytes("--card", text)
    hint = suggestion(name, list(CARDS))
    raise InputError(f"--card {text} is not a card known here ({hint}): give its memory, such as 24GiB.")
