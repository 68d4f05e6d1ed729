"""Slots that a simulated llama.cpp server saved, a file each."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

from harness.sim.manners.llama_cpp_refusal import Refusal, missing, not_supported, wrong_type
from harness.sim.scheduler import Scheduler

ACTIONS = ("save", "restore", "erase")
_NAME = re.compile(r"[^/\\:*?\"<>|\x00-\x1f]{1,255}")


class SlotFiles:
    """What `POST /slots/N?action=...` does with an idle slot. The real server's files hold keys and values, these the
    token ids alone, and the name of the model: the state of another one is refused."""

    def __init__(self, scheduler: Scheduler, folder: str | None, model: str, slot_tokens: int) -> None:
        """`folder` is made if need be; None: every action is refused."""
        self._scheduler = scheduler
        self._folder = None if folder is None else Path(folder)
        self._model = model
        self._slot_tokens = slot_tokens
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def refuse_without_folder(self) -> None:
        """Raises Refusal, also of actions that do not exist."""
        if self._folder is None:
            raise not_supported("This server does not support slots action. Start it with `--slot-save-path`")

    def path(self, body: Any) -> Path:
        """The file that a request names. Raises Refusal."""
        assert self._folder is not None
        if "filename" not in (body if isinstance(body, dict) else {}):
            raise missing("filename")
        name = body["filename"]
        if not isinstance(name, str):
            raise wrong_type(name, "string")
        if not _NAME.fullmatch(name) or name.startswith(" ") or name.endswith((" ", ".")) or ".." in name:
            raise Refusal("Invalid filename")
        return self._folder / name

    def act(self, action: str, number: int, path: Path | None) -> dict[str, Any]:
        """What the answer tells. Raises Refusal for a file that cannot be restored; its slot is empty then."""
        if path is None:
            return {"n_erased": self._scheduler.erase_slot(number)}
        began = time.perf_counter()
        if action == "save":
            saved, size = self._save(number, path)
            return {
                "filename": path.name,
                "n_saved": saved,
                "n_written": size,
                "timings": {"save_ms": _ms_since(began)},
            }
        restored, size = self._restore(number, path)
        return {
            "filename": path.name,
            "n_restored": restored,
            "n_read": size,
            "timings": {"restore_ms": _ms_since(began)},
        }

    def _save(self, number: int, path: Path) -> tuple[int, int]:
        ids = self._scheduler.slot_ids(number)
        text = json.dumps({"model": self._model, "ids": ids}).encode()
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(text)
        return len(ids), len(text)

    def _restore(self, number: int, path: Path) -> tuple[int, int]:
        self._scheduler.erase_slot(number)
        try:
            text = path.read_bytes()
            state = json.loads(text)
        except (OSError, ValueError):
            text, state = b"", None
        if not isinstance(state, dict) or state.get("model") != self._model or len(state["ids"]) > self._slot_tokens:
            raise Refusal("Unable to restore slot: No available space in KV cache or invalid slot save file")
        self._scheduler.fill_slot(number, state["ids"])
        return len(state["ids"]), len(text)


def _ms_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1e3, 3)
