"""Parts of a worker that does not see the master's file system: they travel as messages, and the master writes them.

A part is cut into numbered pieces. The master acknowledges each piece, the last one that was missing only when the
whole part is written. The worker has few pieces under way at a time, sends those again that were not acknowledged in a
while, and forgets a part when all of it was: so a link may be cut, and messages may be lost, doubled or come late, and
each part is written once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from harness.record.storage import Folder
from harness.record.writer import InThread, in_this_thread

PIECE_BYTES = 256 * 1024
"""A larger message would hold up Locust's own, and the loop that packs it."""
PIECES_UNDER_WAY = 8
"""So many fill a link of 2 MiB x its round trips a second, and Locust's own messages wait for no more."""
SEND_AGAIN_S = 5.0
MOST_BYTES_WAITING = 256 * 1024 * 1024
"""Of parts that the master has not taken."""


@dataclass(slots=True, eq=False)
class _Waiting:
    """A part, or what the master has not acknowledged of it."""

    data: pa.Buffer
    missing: set[int]
    sent_s: dict[int, float] = field(default_factory=dict)
    """Number of each piece under way -> when it was sent."""

    def piece(self, number: int) -> bytes:
        start = number * PIECE_BYTES
        return bytes(self.data.slice(start, min(PIECE_BYTES, self.data.size - start)).to_pybytes())


class Outbox:
    """Stands in for the run's folder in a `PartWriter`: keeps finished parts until the master has them."""

    def __init__(self, run_id: str, send_message: Callable[[dict[str, Any]], None]) -> None:
        self._run_id = run_id
        self._send_message = send_message
        self._waiting: dict[str, _Waiting] = {}

    def name_of(self, name: str) -> str:
        return f"the master's {name}"

    def exists(self, name: str) -> bool:
        return False

    def write(self, name: str, data: bytes | pa.Buffer) -> None:
        """May be called in any thread. Raises OSError if too much is waiting already: the part is not kept."""
        if self.is_full:
            raise OSError(f"{self.bytes_waiting >> 20} MiB wait for the master already; its link is too slow, or cut")
        buffer = pa.py_buffer(data)
        self._waiting[name] = _Waiting(buffer, set(range(-(-buffer.size // PIECE_BYTES))))

    @property
    def bytes_waiting(self) -> int:
        return sum(part.data.size for part in list(self._waiting.values()))

    @property
    def is_full(self) -> bool:
        """No further part is taken until the master has taken some."""
        return self.bytes_waiting > MOST_BYTES_WAITING

    @property
    def parts_waiting(self) -> int:
        return len(self._waiting)

    def take_back(self) -> list[tuple[str, pa.Buffer]]:
        """Give up on all parts; returns their names and contents."""
        waiting, self._waiting = self._waiting, {}
        return [(name, part.data) for name, part in waiting.items()]

    def send(self, now_s: float) -> None:
        """Send what may be sent now. Call it often, where Locust's messages may be sent; `now_s` is monotonic."""
        parts = list(self._waiting.items())
        for _, part in parts:
            part.sent_s = {number: s for number, s in part.sent_s.items() if now_s - s < SEND_AGAIN_S}
        room = PIECES_UNDER_WAY - sum(len(part.sent_s) for _, part in parts)
        for name, part in parts:
            pieces = -(-part.data.size // PIECE_BYTES)
            for number in sorted(part.missing - part.sent_s.keys())[: max(0, room)]:
                part.sent_s[number] = now_s
                room -= 1
                self._send_message(
                    {
                        "run_id": self._run_id,
                        "name": name,
                        "number": number,
                        "pieces": pieces,
                        "piece": part.piece(number),
                    }
                )

    def acknowledge(self, name: str, number: int) -> None:
        """The master has this piece."""
        part = self._waiting.get(name)
        if part is None:
            return
        part.missing.discard(number)
        part.sent_s.pop(number, None)
        if not part.missing:
            del self._waiting[name]


class Inbox:
    """The master's side: puts the pieces together, and writes each whole part once."""

    def __init__(self, folder: Folder, in_thread: InThread = in_this_thread) -> None:
        self._folder = folder
        self._in_thread = in_thread
        self._pieces: dict[str, dict[int, bytes]] = {}
        self._being_written: set[str] = set()
        self._written: set[str] = set()
        self.unwritten: dict[str, str] = {}
        """Name of a part -> why it could not be written; the worker sends it again, and it may be written yet."""

    def take(self, message: dict[str, Any]) -> bool:
        """Whether to acknowledge the piece. May be called in several greenlets."""
        name: str = message["name"]
        if name in self._written:
            return True
        if name in self._being_written:
            return False
        pieces = self._pieces.setdefault(name, {})
        pieces[message["number"]] = message["piece"]
        if len(pieces) < message["pieces"]:
            return True
        self._being_written.add(name)
        try:
            whole = b"".join(pieces[number] for number in range(message["pieces"]))
            self._in_thread(lambda: self._folder.write(name, whole))
        except OSError as error:
            del pieces[message["number"]]  # the one that comes again
            self.unwritten[name] = str(error)
            return False
        finally:
            self._being_written.discard(name)
        self._written.add(name)
        del self._pieces[name]
        self.unwritten.pop(name, None)
        return True
