"""How llama.cpp's server ends an answer at a stop string, and what it holds back until then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer with stop strings looked for."""

    pieces: tuple[str, ...]
    """What a stream says at each token: nothing while the text could become a stop string."""
    text: str
    """All of the answer up to the stop string."""
    stop: str | None
    """Where it ends; None: none came."""


def spoken(tokens: Iterable[str], stops: Sequence[str]) -> Spoken:
    """The answer whose tokens are these texts, up to the token that completes the first of `stops`.

    As in the real server, text that is held back at the last token is in the whole answer, but not in the stream.
    """
    pieces: list[str] = []
    text, told = "", 0
    for token in tokens:
        text += token
        found = [(place, stop) for stop in stops if (place := text.find(stop, told)) >= 0]
        if found:
            place, stop = min(found)
            pieces.append(text[told:place])
            return Spoken(tuple(pieces), text[:place], stop)
        if any(_may_become(text[told:], stop) for stop in stops):
            pieces.append("")
        else:
            pieces.append(text[told:])
            told = len(text)
    return Spoken(tuple(pieces), text, None)


def _may_become(text: str, stop: str) -> bool:
    """Whether the text ends with a beginning of the stop string."""
    return any(text.endswith(stop[:length]) for length in range(1, len(stop)))
