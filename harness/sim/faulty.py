"""The ASGI application that lets requests meet faults."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import formatdate
from typing import Any

from harness.errors import InputError
from harness.sim.broken_answers import BREAKERS, refuse
from harness.sim.faults import KINDS, Fault, parse
from harness.sim.web import Application, Receive, Send

HEADER = b"x-sim-fault"
"""Of a request: the faults that it wants to meet, with commas between them."""
GENERATING = ("/chat/completions", "/completions", "/completion", "/generate")
"""How the paths end of the requests that faults of answers are for."""


class Faulty:
    """An ASGI application with faults: those it was started with, and those that requests ask for."""

    def __init__(
        self, application: Application, faults: Sequence[Fault], seed: int, restart: Callable[[], object]
    ) -> None:
        """`restart` makes a new process of this one, at once. The time of `loading` begins now."""
        self._application = application
        self._faults = tuple(fault for fault in faults if KINDS[fault.kind].hits in ("answers", "metrics", "all"))
        self._random = random.Random(seed)
        self._restart = restart
        self._loaded_s = time.monotonic() + max([fault.value for fault in faults if fault.kind == "loading"], default=0)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if time.monotonic() < self._loaded_s:
            return await refuse(send, 503, "Loading model", {})
        try:
            met = [*self._drawn(scope), *_asked_for(scope)]
        except InputError as error:
            return await refuse(send, 400, str(error), {})
        for fault in met:
            match fault.kind:
                case "restart":
                    self._restart()
                case "429" | "503":
                    words = {"429": "Too many requests", "503": "The server is overloaded"}[fault.kind]
                    return await refuse(send, int(fault.kind), words, {"retry-after": f"{fault.value:g}"})
                case "slow-metrics":
                    await asyncio.sleep(fault.value)
                case "clock-skew":
                    _skew(scope, fault.value)
                case _:
                    send = BREAKERS[fault.kind](send, scope, fault.value)
        await self._application(scope, receive, send)

    def _drawn(self, scope: Mapping[str, Any]) -> Iterator[Fault]:
        """Of the faults it was started with, those that this request meets."""
        for fault in self._faults:
            if _can_hit(fault, scope) and (fault.share == 1 or self._random.random() < fault.share):
                yield fault


def _asked_for(scope: Mapping[str, Any]) -> Iterator[Fault]:
    for name, value in scope["headers"]:
        if name == HEADER:
            for text in value.decode("latin-1").split(","):
                fault = parse(text)
                if KINDS[fault.kind].hits == "start":
                    raise InputError(f"No request can ask for {fault.kind}: start the engine with it.")
                if _can_hit(fault, scope):
                    yield fault


def _can_hit(fault: Fault, scope: Mapping[str, Any]) -> bool:
    hits, path = KINDS[fault.kind].hits, scope["path"]
    if hits == "answers":
        return bool(scope["method"] == "POST" and path.endswith(GENERATING))
    return bool(hits != "metrics" or path == "/metrics")


def _skew(scope: Mapping[str, Any], seconds: float) -> None:
    """Let the response be dated `seconds` later than it is."""
    date = formatdate(time.time() + seconds, usegmt=True).encode()
    cycle = scope["extensions"]["connection"].cycle
    cycle.default_headers = [(name, date if name == b"date" else value) for name, value in cycle.default_headers]
