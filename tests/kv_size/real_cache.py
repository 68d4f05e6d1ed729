"""What llama.cpp's own server allocates for a model's cache, and what it writes of it into a file."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.kv_size.typed_server import URL

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60


@dataclass(frozen=True)
class Allocated:
    """A line of the log: so many MiB, to two decimals, for keys and values of so many tokens in so many layers."""

    tokens: int
    layers: int
    keys_mib: str
    values_mib: str


@dataclass(frozen=True)
class RealCache:
    url: str
    log: Path

    def allocated(self) -> list[Allocated]:
        lines = re.findall(
            r"llama_kv_cache: size =.*\( *(\d+) cells, *(\d+) layers.*K \(\w+\): +([\d.]+) MiB, V \(\w+\): +([\d.]+)",
            self.log.read_text(errors="replace"),
        )
        return [Allocated(int(tokens), int(layers), keys, values) for tokens, layers, keys, values in lines]

    def saved_bytes(self, tokens: int) -> int:
        """Size of the file of a slot that holds so many tokens."""
        asked = {
            "prompt": [300 + number % 1000 for number in range(tokens)],
            "n_predict": 1,
            "cache_prompt": False,
            "temperature": 0,
        }
        self._post("/completion", asked)
        saved = self._post("/slots/0?action=save", {"filename": "slot"})
        assert saved["n_saved"] == tokens
        assert isinstance(saved["n_written"], int)
        return saved["n_written"]

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        response = requests.post(self.url + path, json=body, timeout=60)
        response.raise_for_status()
        return response.json()


@contextmanager
def real_cache(model: Path, keys: str, values: str, folder: Path) -> Iterator[RealCache]:
    """The server with one slot and these cache types, for as long as the block runs."""
    log = folder / "server.log"
    (folder / URL).unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.kv_size.typed_server", str(model), keys, values, str(folder)]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=sink, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True
        )
    try:
        yield RealCache(_url(process, log), log)
    finally:
        process.kill()
        process.communicate()


def _url(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where the server listens, when its model is loaded."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(errors="replace")
        if (log.parent / URL).exists():
            url = (log.parent / URL).read_text()
            if requests.get(f"{url}/health", timeout=10).status_code == 200:
                return url
        time.sleep(0.02)
    raise TimeoutError(log.read_text(errors="replace"))
