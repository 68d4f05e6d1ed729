"""A server that tells nothing of tokens or of its cache: only how long it takes shows that it has one."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from tests.engines.scripted_server import Request, Routes

WORD_S = 1e-4
"""What computing a word takes."""


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@dataclass
class SilentServer:
    """Every word is a token."""

    caches: bool = True
    fails: int = 0
    """So many streamed requests are answered with an error, from the first one on."""
    word_s: float = WORD_S
    """What a word costs that is not in the cache."""
    kept: list[list[str]] = field(default_factory=list)
    streamed: int = 0

    @property
    def routes(self) -> Routes:
        return {
            "GET /v1/models": {"object": "list", "data": [{"id": "silent"}]},
            "POST /v1/chat/completions": self._answer,
        }

    def _answer(self, request: Request) -> Any:
        body = json.loads(request["body"])
        if not body["stream"]:
            return {"choices": [{"message": {"content": "yes"}, "finish_reason": "length"}]}
        self.streamed += 1
        if self.streamed <= self.fails:
            return 503, {"error": {"message": "too busy"}}
        words = body["messages"][0]["content"].split()
        cached = max((common(words, earlier) for earlier in self.kept), default=0) if self.caches else 0
        self.kept.append(words)
        time.sleep(self.word_s * (len(words) - cached))
        event = {"choices": [{"delta": {"content": "yes"}, "finish_reason": "length"}]}
        return f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n"
