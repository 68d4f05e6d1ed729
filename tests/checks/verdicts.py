"""What prove, evict, isolate and persist must say of each simulated engine, cache on and off, and with each fault."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import pytest

from harness.checks.evict import evict
from harness.checks.examine import examine
from harness.checks.isolate import isolate
from harness.checks.laboratory import Finding, Laboratory
from harness.checks.persist import Wish, persist
from harness.checks.prove import Asked, prove
from harness.embedded.process import free_port, healthy, process_group
from harness.embedded.server import running_server
from harness.errors import KvswarmError
from harness.sim.options import MannerName, SimOptions

Check = Literal["prove", "evict", "isolate", "persist"]
CHECKS: tuple[Check, ...] = get_args(Check)
MANNERS: tuple[MannerName, ...] = get_args(MannerName)

TABLE = """
fault          check  | vllm                   | sglang                 | llama-cpp            | mlx-lm
none           prove  | works/off              | works/off              | works/off            | works/off
none           evict  | as-claimed/no-hits     | as-claimed/no-hits     | as-claimed/no-hits   | found/no-hits
none           isolate| isolated/unclear       | isolated/unclear       | shared/unclear       | shared/unclear
none           persist| not-offered/not-offered| not-offered/not-offered| works/no-hits        | not-offered/not-offered
no-usage       prove  | reporting-off/off      | reporting-off/off      | reporting-off/off    | reporting-off/off
no-usage       evict  | as-claimed/no-hits     | as-claimed/no-hits     | as-claimed/no-hits   | found/unseen
no-usage       isolate| isolated/unclear       | isolated/unclear       | shared/unclear       | shared/unclear
no-usage       persist| not-offered/not-offered| not-offered/not-offered| works/no-hits        | not-offered/not-offered
broken-metrics prove  | works/off              | works/off              | works/off            | works/off
broken-metrics evict  | found/no-hits          | as-claimed/no-hits     | as-claimed/no-hits   | found/no-hits
broken-metrics isolate| isolated/unclear       | isolated/unclear       | shared/unclear       | shared/unclear
broken-metrics persist| not-offered/not-offered| not-offered/not-offered| works/no-hits        | not-offered/not-offered
restart        prove  | works/off              | works/off              | works/off            | works/off
restart        evict  | restarted/restarted    | restarted/restarted    | restarted/restarted  | found/no-hits
restart        isolate| restarted/restarted    | restarted/restarted    | restarted/restarted  | shared/unclear
restart        persist| not-offered/not-offered| not-offered/not-offered| restarted/restarted  | not-offered/not-offered
reset          prove  | works/off              | works/off              | works/off            | error/error
reset          evict  | as-claimed/no-hits     | as-claimed/no-hits     | as-claimed/no-hits   | error/error
reset          isolate| isolated/unclear       | isolated/unclear       | shared/unclear       | error/error
reset          persist| not-offered/not-offered| not-offered/not-offered| works/no-hits        | error/error
429            prove  | unclear/unclear        | unclear/unclear        | unclear/unclear      | error/error
429            evict  | unanswered/unanswered  | unanswered/unanswered  | unanswered/unanswered| error/error
429            isolate| unanswered/unanswered  | unanswered/unanswered  | unanswered/unanswered| error/error
429            persist| not-offered/not-offered| not-offered/not-offered| unanswered/unanswered| error/error
loading        prove  | error/error            | error/error            | error/error          | error/error
loading        evict  | error/error            | error/error            | error/error          | error/error
loading        isolate| error/error            | error/error            | error/error          | error/error
loading        persist| error/error            | error/error            | error/error          | error/error
"""
"""Verdicts with the cache on and off. error: nothing was measured, and one sentence says why.

An answer of one token does not come to what happens after three chunks; only mlx-lm's tokens are counted by answers
that are not streamed, which break. vLLM tells its capacity on its metrics page alone. The restart comes between two
requests; mlx-lm has no page that would tell it.
"""
LIKE: Mapping[str, str] = MappingProxyType(
    {
        "stall": "none",
        "no-done": "none",
        "tokens-per-chunk": "none",
        "role-first": "none",
        "no-role-first": "none",
        "slow-metrics": "none",
        "clock-skew": "none",
        "error-event": "reset",
        "truncated-json": "reset",
        "503": "429",
        "unreachable": "loading",
    }
)
"""Faults that a check says the same of as of another one."""
SHORT: Mapping[str, str] = MappingProxyType({"stall": "stall:0.2", "slow-metrics": "slow-metrics:0.3"})
"""With a value that costs less time than the usual one."""
BEGINNING = ("loading", "unreachable")
"""The check comes while the engine starts."""
RESTARTED_BEFORE: Mapping[Check, int] = MappingProxyType({"prove": 20, "evict": 14, "isolate": 8, "persist": 8})
"""Number of the request before which the engine is started again."""
UNKNOWN = ("unclear", "unseen", "unanswered", "restarted", "not-offered", "error")
"""Verdicts with exit code 2."""
REFUTED = ("off", "no-hits", "shared")
"""Verdicts with exit code 1."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An engine; `fault`: a kind of `harness.sim.faults`, or none."""

    manner: MannerName
    caching: bool
    fault: str = "none"
    by_header: bool = False
    """The fault is one that each request asks for, not one that the engine was started with."""

    def __str__(self) -> str:
        how = f"{'header-' if self.by_header else ''}{self.fault}"
        return f"{self.manner}-{'on' if self.caching else 'off'}-{how}"


def expected(check: Check, subject: Subject) -> tuple[str, int]:
    """Verdict and exit code."""
    fault = LIKE.get(subject.fault, subject.fault)
    if subject.by_header and fault in ("restart", "loading"):  # its very first request meets it
        fault = "loading"
    verdict = _rows()[fault, check][subject.manner, subject.caching]
    return verdict, 2 if verdict in UNKNOWN else 1 if verdict in REFUTED else 0


def faults() -> list[str]:
    """All that the table tells of, "none" among them."""
    return [*dict.fromkeys(fault for fault, _ in _rows()), *LIKE]


def _rows() -> dict[tuple[str, Check], dict[tuple[MannerName, bool], str]]:
    rows: dict[tuple[str, Check], dict[tuple[MannerName, bool], str]] = {}
    for line in TABLE.strip().splitlines()[1:]:
        named, *cells = line.split("|")
        fault, check = named.split()
        rows[fault, check] = {  # type: ignore[index]
            (manner, caching): word
            for manner, cell in zip(MANNERS, cells, strict=True)
            for caching, word in zip((True, False), cell.strip().split("/"), strict=True)
        }
    return rows


def sized(subject: Subject, folder: Path, port: int = 0) -> SimOptions:
    """A small cache on a slow machine whose clock goes ten times as fast; slots are saved in `folder`."""
    room: dict[str, Any] = {"kv_tokens": 8192, "context_tokens": 2048, "entries": 3}
    if subject.manner == "llama-cpp":
        room = {"kv_tokens": 4096, "slots": 2, "slot_save_path": str(folder)}
    has = subject.fault not in ("none", "restart") and not subject.by_header
    return SimOptions(
        manner=subject.manner,
        preset="cpu",
        time_scale=10.0,
        prefix_caching=subject.caching,
        faults=(_valued(subject.fault),) if has else (),
        port=port,
        **room,
    )


def _valued(fault: str) -> str:
    return f"{fault}:30" if fault in BEGINNING else SHORT.get(fault, fault)


@contextmanager
def running(subject: Subject, folder: Path) -> Iterator[str]:
    """The engine, as a target; also one that is not up yet."""
    if subject.fault in BEGINNING and not subject.by_header:
        port = free_port("127.0.0.1")
        options = sized(subject, folder, port)
        with process_group([str(options.python()), *options.arguments(port)], {}, folder / "log"):
            if subject.fault == "loading":
                _until_it_listens(port)
            yield f"http://127.0.0.1:{port}/v1"
        return
    with running_server(sized(subject, folder)) as server:
        if not subject.by_header:
            yield server.url
            return
        target = folder / f"{subject}.yaml"
        target.write_text(f"url: {server.url}\nheaders: {{X-Sim-Fault: '{_valued(subject.fault)}'}}\n")
        yield str(target)


def judged(
    check: Check, subject: Subject, target: str, folder: Path, patch: pytest.MonkeyPatch
) -> tuple[str, int, str]:
    """Verdict, exit code and sentence of one check."""
    if subject.fault == "restart" and not subject.by_header:
        restart_before(RESTARTED_BEFORE[check], patch)
    checks: Mapping[Check, Callable[[Laboratory], Finding]] = {
        "prove": lambda laboratory: prove([laboratory], Asked(1000, questions=2))[0].finding(),
        "evict": lambda laboratory: evict(laboratory, 600, None),
        "isolate": lambda laboratory: isolate(laboratory, None),
        "persist": lambda laboratory: persist(laboratory, Wish(erase_others=True), None),
    }
    try:
        finding = examine(check, target, "", None, str(folder), {}, checks[check], in_json=True)
    except KvswarmError as error:
        return "error", error.exit_code, str(error)
    return finding.verdict, finding.exit_code, finding.sentence


def restart_before(number: int, patch: pytest.MonkeyPatch) -> None:
    """Let the engine be started again before the request of that number, from 1."""
    chat, sent = Laboratory.chat, 0

    def restart_or_not(laboratory: Laboratory, *asked: Any, **more: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent == number:
            _restart(laboratory.target.url)
        return chat(laboratory, *asked, **more)

    patch.setattr(Laboratory, "chat", restart_or_not)


def _restart(url: str) -> None:
    """Return when it is up again."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    connection.request("GET", "/health", headers={"X-Sim-Fault": "restart"})
    with pytest.raises((OSError, http.client.HTTPException)):
        connection.getresponse()
    connection.close()
    deadline = time.monotonic() + 30
    while not healthy(url):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _until_it_listens(port: int) -> None:
    """Until it answers, though with a refusal."""
    deadline = time.monotonic() + 30
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", "/health")
            connection.getresponse()
            return
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        finally:
            connection.close()
