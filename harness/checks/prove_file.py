"""A prefix out of a file: its text in the three pieces that a prefix has."""

from __future__ import annotations

from pathlib import Path

from harness.engines.openai import OpenAIEngine
from harness.errors import InputError

CHARACTERS_A_TOKEN = 4
"""Of English text, about; where the engine does not count the tokens of a text."""


def read_prefix(path: Path) -> str:
    """Raises InputError if the file cannot be read, is not text, or is too short to be cut."""
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InputError(f"The prefix {path} cannot be read: {error.strerror or error}; name another file.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"The prefix {path} is not text in UTF-8: convert it, or name another file.") from error
    if len(text.split()) < 20:
        raise InputError(f"The prefix {path} has {len(text.split())} words: a prefix needs 20 at least.")
    return text


def pieces(text: str) -> tuple[str, str, str]:
    """To the middle, to nine tenths, to the end; each cut stands before a space, so that words stay whole."""
    middle, nine_tenths = (_cut(text, len(text) * share // 10) for share in (5, 9))
    return f"\n{text[:middle]}", text[middle:nine_tenths], text[nine_tenths:]


def counted(engine: OpenAIEngine, text: str) -> list[tuple[str, int]]:
    """Each piece with its tokens: by the engine, else a guess."""
    sized = []
    for piece in pieces(text):
        tokens = engine.count_text(piece)
        sized.append((piece, max(1, len(piece) // CHARACTERS_A_TOKEN) if tokens is None else tokens))
    return sized


def _cut(text: str, place: int) -> int:
    """The first white space from `place` on, else `place`."""
    return next((at for at in range(place, len(text)) if text[at].isspace()), place)
