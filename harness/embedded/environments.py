"""Virtual environments of the engines that run in one of their own, below .cache/engines of the checkout.

Each engine's packages are pinned, all of them, in requirements/<engine>.txt beside this file.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import KvswarmError

ENGINES = Path(__file__).resolve().parents[2] / ".cache" / "engines"
REQUIREMENTS = Path(__file__).parent / "requirements"
STAMP = "kvswarm.stamp"
"""Written into an environment as its last file: of what it was made. Without it the environment is not whole."""
TAIL_LINES = 6


def names() -> list[str]:
    """The engines that have an environment of their own."""
    return sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def installed(engine: str, folder: Path = ENGINES) -> Path | None:
    """The Python of the engine's environment; None if it is not there, or not of the pinned packages."""
    python = folder / engine / "bin" / "python"
    stamp = folder / engine / STAMP
    return python if stamp.is_file() and stamp.read_text() == _fingerprint(engine, folder) else None


def install(engine: str, folder: Path = ENGINES) -> Path:
    """The Python of the engine's environment, which is made first if need be: up to 2.5 GB, in a minute or two.

    pip takes its settings (index, proxy) from its own configuration and PIP_ variables.
    Raises KvswarmError if pip fails; what was made of the environment is then removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f"{engine}.lock"):
        python = installed(engine, folder)
        if python is None:
            print(f"installing {engine} in {folder / engine} (once)", flush=True)
            started = time.monotonic()
            python = _make(engine, folder)
            print(f"installed {engine} in {time.monotonic() - started:.0f} s", flush=True)
    return python


def _make(engine: str, folder: Path) -> Path:
    place, log = folder / engine, folder / f"{engine}.log"
    python = place / "bin" / "python"
    shutil.rmtree(place, ignore_errors=True)
    whole = False
    try:
        with log.open("wb") as sink:
            _run(engine, log, sink.fileno(), [sys.executable, "-m", "venv", str(place)])
            # The list is whole, so nothing is left to resolve; some packages ask for others that only a GPU needs.
            pinned = ["--no-deps", "--requirement", str(REQUIREMENTS / f"{engine}.txt")]
            pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
            _run(engine, log, sink.fileno(), [*pip, *pinned])
        (place / STAMP).write_text(_fingerprint(engine, folder))
        whole = True
    finally:
        if not whole:
            shutil.rmtree(place, ignore_errors=True)
    return python


def _run(engine: str, log: Path, sink: int, command: list[str]) -> None:
    if subprocess.call(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT):
        text = log.read_text(errors="replace")
        hint = (
            " For torch's CPU build pip must know PyTorch's CPU index: name it in PIP_EXTRA_INDEX_URL."
            if "No matching distribution found for torch" in text
            else ""
        )
        last = " / ".join(line.strip() for line in text.splitlines()[-TAIL_LINES:])
        raise KvswarmError(f"{engine} could not be installed.{hint} The log, {log}, ends: {last}")


def _fingerprint(engine: str, folder: Path) -> str:
    """The place counts, as an environment cannot be moved."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    parts = (version, str(folder / engine), (REQUIREMENTS / f"{engine}.txt").read_text())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the lock ends with its process."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
