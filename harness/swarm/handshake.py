"""What a worker must have in common with the master to take part in a run, and why one that has not is refused."""

from __future__ import annotations

import platform
import socket
import time
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness import __version__
from harness.errors import InputError
from harness.record.schema import FORMAT_VERSION
from harness.workload.corpus import open_corpus
from harness.workload.scenario import WORDS, LongDocument, Replay, Scenario
from harness.workload.trace_file import load_trace

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What one process says of itself: plain values only, as Locust packs it with msgpack."""

    kvswarm: str
    """Its version."""
    source: str
    """Fingerprint of its source files: two checkouts may have one version."""
    format_version: int
    """Of the tables that it writes."""
    python: str
    host: str

    def to_message(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Credentials:
        return cls(**{name: message[name] for name in cls.__slots__})


@cache
def own_credentials() -> Credentials:
    """Those of this process."""
    return Credentials(
        __version__, source_fingerprint(PACKAGE), FORMAT_VERSION, platform.python_version(), socket.gethostname()
    )


def source_fingerprint(package: Path) -> str:
    """The same on two machines if all Python files of the package are, wherever it lies."""
    digest = sha256()
    for path in sorted(package.rglob("*.py"), key=lambda path: path.relative_to(package).as_posix()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def refusal(master: Credentials, worker: Credentials) -> str | None:
    """Why the worker cannot take part, and what to do about it; None: it can."""
    if worker.kvswarm != master.kvswarm:
        return f"it has kvswarm {worker.kvswarm}, the master has {master.kvswarm}: install the master's version there"
    if worker.format_version != master.format_version:
        return (
            f"it writes format version {worker.format_version}, the master {master.format_version}: install the "
            "master's kvswarm there"
        )
    if worker.source != master.source:
        return (
            f"it has kvswarm {worker.kvswarm} as the master does, but from other source files ({worker.source} there, "
            f"{master.source} here): copy or check out the same state on both"
        )
    return None


def files_fingerprint(scenario: Scenario) -> str:
    """Of the files that the scenario reads on each machine; empty: it reads none. Raises InputError without them."""
    if isinstance(scenario, Replay):
        return load_trace(scenario).fingerprint
    if isinstance(scenario, LongDocument) and scenario.corpus != WORDS:
        return open_corpus(scenario.corpus).fingerprint
    return ""


def files_refusal(scenario: Scenario, master: str, worker: str) -> str | None:
    """Why a worker with this `files_fingerprint` cannot take part; None: it can."""
    if worker == master:
        return None
    name = scenario.corpus if isinstance(scenario, LongDocument) else scenario.name
    return (
        f"its files of {name} are not the master's: use the same ones on every machine, and for the corpus python-docs "
        "the same version of Python"
    )


# --- the messages ---------------------------------------------------------------------------------

ASK, CLOCK, REFUSED = "kvswarm-ask", "kvswarm-clock", "kvswarm-refused"
"""From master to worker: who are you; what time is it; you have no part, and why."""
ANSWER, FILES, TIME = "kvswarm-answer", "kvswarm-files", "kvswarm-time"
"""From worker to master, in the same order; FILES follows ANSWER when the scenario's files have been read."""


def files_message(question: dict[str, Any]) -> dict[str, Any]:
    """The worker's FILES message to an ASK message."""
    try:
        return {"number": question["number"], "files": files_fingerprint(Scenario.from_json(question["scenario"]))}
    except InputError as error:
        return {"number": question["number"], "problem": str(error)}


def time_message(question: dict[str, Any]) -> dict[str, Any]:
    """The worker's TIME message to a CLOCK message, to be sent at once."""
    return {**question, "seen_ns": time.time_ns()}
