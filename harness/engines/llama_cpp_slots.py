"""llama-server's slots, as its own calls show, save, restore and empty them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from harness.engines.control import Control, answer_in_short, json_object
from harness.errors import TargetError

SWITCH = "--slot-save-path DIR"
"""Without it llama-server neither saves nor restores nor erases a slot."""
STARTED_HEADER = "Process-Start-Time-Unix"
"""Of its metrics page, in microseconds."""


class NotOffered(TargetError):
    """The server was started without that switch."""


class NotRestored(TargetError):
    """The server did not take the file; the slot is empty."""


@dataclass(frozen=True, slots=True)
class SlotSeen:
    """A slot as GET /slots shows it."""

    number: int
    busy: bool
    held_tokens: int
    """0 also of a slot that was filled from a file, and that no request has used yet."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What a save or a restore tells."""

    tokens: int
    bytes: int
    ms: float


class SlotControl:
    """All calls raise TargetError if the server cannot be asked, or answers something else than llama-server does."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._root = control.target.server_root

    def offered(self) -> bool:
        """Whether slots are saved and erased here; asked with an action that does not exist, so nothing is done."""
        response = self._control.post(f"{self._root}/slots/0?action=none", {})
        if response.status_code not in (400, 501):
            raise TargetError(f"POST {response.url} answered {answer_in_short(response)}; is this llama-server?")
        return response.status_code == 400

    def seen(self) -> list[SlotSeen] | None:
        """All slots; None: the server does not show them (--no-slots)."""
        response = self._control.get(f"{self._root}/slots")
        if response.status_code == 501:
            return None
        try:
            shown = json.loads(response.content) if response.status_code == 200 else None
            if isinstance(shown, list):
                return [SlotSeen(one["id"], one["is_processing"], one.get("n_prompt_tokens", 0)) for one in shown]
        except (ValueError, KeyError, TypeError):  # no JSON, or slots of another kind
            pass
        raise TargetError(f"GET {response.url} answered {answer_in_short(response)}; is this llama-server?")

    def erase(self, number: int) -> int:
        """How many tokens the slot held; waits while it is busy. Raises NotOffered."""
        response = self._control.post(f"{self._root}/slots/{number}?action=erase", {})
        if response.status_code == 501:
            raise NotOffered(f"llama-server must be started with {SWITCH} to erase slots")
        if response.status_code != 200:
            raise TargetError(f"slot {number} could not be erased: {response.url} answered {answer_in_short(response)}")
        return _count(json_object(response), "n_erased")

    def save(self, number: int, name: str) -> Moved:
        """Into the file `name` in the server's folder, over one that is there."""
        told = json_object(self._control.post(f"{self._root}/slots/{number}?action=save", {"filename": name}))
        return _moved(told, "n_saved", "n_written", "save_ms")

    def restore(self, number: int, name: str) -> Moved:
        """In the place of what the slot holds. Raises NotRestored if the server refuses the file."""
        response = self._control.post(f"{self._root}/slots/{number}?action=restore", {"filename": name})
        if response.status_code == 400:
            raise NotRestored(f"POST {response.url} answered {answer_in_short(response)}")
        return _moved(json_object(response), "n_restored", "n_read", "restore_ms")

    def started(self) -> str | None:
        """A word that another process of the server would not say; None: it has no metrics page, or an old one."""
        response = self._control.get(f"{self._root}/metrics")
        return response.headers.get(STARTED_HEADER) if response.status_code == 200 else None


def _moved(told: dict[str, Any], tokens: str, size: str, ms: str) -> Moved:
    timings = told.get("timings")
    time_ms = timings.get(ms) if isinstance(timings, dict) else None
    if not isinstance(time_ms, int | float):
        raise TargetError(f"llama-server's answer to an action on a slot has no timings.{ms}: {told}")
    return Moved(_count(told, tokens), _count(told, size), float(time_ms))


def _count(told: dict[str, Any], name: str) -> int:
    value = told.get(name)
    if not isinstance(value, int):
        raise TargetError(f"llama-server's answer to an action on a slot has no {name}: {told}")
    return value
