"""How a router chooses among replicas: in turn, or by what each of them was sent lately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import orjson

from harness.sim.process_options import RouterName

CHUNK = 128
"""Characters of a prompt that are compared together."""
MOST_CHUNKS = 2**16
"""So many are remembered for each replica, which is 8 MB of prompts."""
MOST_AHEAD = 8
"""A replica with more requests under way than so many above the least loaded one is passed over."""


class Policy(Protocol):
    def choose(self, body: bytes, loads: Sequence[int]) -> int:
        """Number of the replica for a request with that body; `loads`: requests that each has under way."""
        ...


def policy(name: RouterName, replicas: int) -> Policy:
    return RoundRobin(replicas) if name == "round-robin" else LongestPrefix(replicas)


class RoundRobin:
    """One after the other."""

    def __init__(self, replicas: int) -> None:
        self._replicas = replicas
        self._next = 0

    def choose(self, body: bytes, loads: Sequence[int]) -> int:
        chosen = self._next
        self._next = (chosen + 1) % self._replicas
        return chosen


class LongestPrefix:
    """The replica that had the longest prefix of the prompt among those that it was sent lately, by text.

    Of several with the same, the one with the fewest requests under way, then the one that was sent least. A replica
    that has far more to do than another is left out, so that what all prompts begin with comes to be everywhere.
    """

    def __init__(self, replicas: int) -> None:
        self._known: list[dict[int, None]] = [{} for _ in range(replicas)]
        """For each replica the chunks of its prompts, each by a hash of it and of all before it; the oldest first."""

    def choose(self, body: bytes, loads: Sequence[int]) -> int:
        chunks = list(_chunks(prompt_text(body)))
        most = min(loads) + MOST_AHEAD

        def rank(replica: int) -> tuple[int, int, int]:
            known = self._known[replica]
            return -_leading(chunks, known), loads[replica], len(known)

        chosen = min((replica for replica, load in enumerate(loads) if load <= most), key=rank)
        self._remember(chosen, chunks)
        return chosen

    def _remember(self, replica: int, chunks: Sequence[int]) -> None:
        known = self._known[replica]
        for chunk in reversed(chunks):  # so that the end of a prompt is forgotten before its beginning
            known.pop(chunk, None)
            known[chunk] = None
        while len(known) > MOST_CHUNKS:
            del known[next(iter(known))]


def prompt_text(body: bytes) -> str:
    """The prompt of a request in one piece: two of them begin alike as far as their prompts do. Empty: it has none."""
    try:
        request: Any = orjson.loads(body)
    except ValueError:
        return ""
    if not isinstance(request, dict):
        return ""
    prompt = request.get("prompt", "")
    if isinstance(prompt, str):
        return "".join(_texts(request.get("messages"))) or prompt
    return orjson.dumps(prompt).decode()[1:-1]


def _texts(messages: Any) -> Iterator[str]:
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            content = message.get("content")
            text = content if isinstance(content, str) else orjson.dumps(content).decode()
            yield f"\0{message.get('role')}\0{text}"


def _chunks(text: str) -> Iterator[int]:
    """Hashes of its whole chunks, each with all before it; what is left at its end is too short to count."""
    chained = 0
    for start in range(0, len(text) - CHUNK + 1, CHUNK):
        chained = hash((chained, text[start : start + CHUNK]))
        yield chained


def _leading(chunks: Sequence[int], known: dict[int, None]) -> int:
    """How many of the first ones are known."""
    for number, chunk in enumerate(chunks):
        if chunk not in known:
            return number
    return len(chunks)
