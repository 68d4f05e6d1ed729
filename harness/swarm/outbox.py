"""Parts of a worker that does not see the master's file system: they travel as messages, and the master writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from harness.record.storage import Folder

PIECE_BYTES = 256 * 1024
"""A larger message would hold up Locust's own, and the loop that packs it."""


class Outbox:
    """Stands in for the run's folder in a `PartWriter`: keeps finished parts until `send` hands them to the master."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._waiting: list[tuple[str, pa.Buffer]] = []

    def name_of(self, name: str) -> str:
        return f"the master's {name}"

    def exists(self, name: str) -> bool:
        return False

    def write(self, name: str, data: bytes | pa.Buffer) -> None:
        """May be called in any thread."""
        self._waiting.append((name, pa.py_buffer(data)))

    def send(self, send_message: Callable[[dict[str, Any]], None]) -> None:
        """Hand over all parts so far, in pieces; call it where Locust's messages may be sent."""
        while self._waiting:
            name, data = self._waiting.pop(0)
            pieces = range(0, data.size, PIECE_BYTES)
            for start in pieces:
                piece = data.slice(start, min(PIECE_BYTES, data.size - start)).to_pybytes()
                is_last = start == pieces[-1]
                send_message({"run_id": self._run_id, "name": name, "piece": piece, "is_last": is_last})


class Inbox:
    """The master's side: puts the pieces together, in the order they were sent, and writes each whole part."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._pieces: dict[str, list[bytes]] = {}

    def take(self, message: dict[str, Any]) -> None:
        """Raises OSError if a part cannot be written."""
        name: str = message["name"]
        self._pieces.setdefault(name, []).append(message["piece"])
        if message["is_last"]:
            self._folder.write(name, b"".join(self._pieces.pop(name)))
