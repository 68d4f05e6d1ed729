"""A server with a prefix cache of its own, so that a test knows to the token what each request hits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.collector import Sample
from harness.engines.base import ChatMessages, Metric
from harness.engines.openai import OpenAIEngine
from tests.engines.scripted_server import Request, Routes

HEAD, TAIL = ["<user>"], ["</user>", "<assistant>"]
HITS = "toy:cached_tokens_total"


@dataclass
class ToyServer:
    """Every word is a token. Each prompt is kept, whole blocks of it can be hit."""

    block: int = 1
    caches: bool = True
    reports: bool = True
    """Whether answers say how much was cached."""
    clock: bool = False
    """Whether the template puts a number that rises into its head."""
    unsteady: bool = False
    """Whether it puts that many words there."""
    loses: int = 0
    """Tokens that each hit is shorter than it should be."""
    whole_only: bool = False
    """Whether only exact repeats are hit."""
    fails_at: int | None = None
    """Number of the streamed request, from 0, that is answered with an error."""
    cached_total: int = 0
    streamed: int = 0
    renders: int = 0
    kept: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def routes(self) -> Routes:
        return {
            "GET /v1/models": {"object": "list", "data": [{"id": "toy", "max_model_len": 8192}]},
            "POST /v1/chat/completions": lambda request: self._answer(self._chat(_body(request)), _body(request)),
            "POST /v1/completions": lambda request: self._answer(
                [str(token) for token in _body(request)["prompt"]], _body(request)
            ),
            "GET /metrics": lambda _: f"# TYPE {HITS} counter\n{HITS} {self.cached_total}\n",
        }

    def render(self, messages: ChatMessages) -> list[str]:
        """The prompt of a chat, a token each."""
        self.renders += 1
        head = [f"<{self.renders}>"] if self.clock else ["<more>"] * self.renders if self.unsteady else []
        return [*HEAD, *head, *messages[0]["content"].split(), *TAIL]

    def _chat(self, body: dict[str, Any]) -> list[str]:
        return self.render(body["messages"])

    def _answer(self, prompt: Sequence[str], body: dict[str, Any]) -> Any:
        if body["stream"]:
            self.streamed += 1
            if self.fails_at == self.streamed - 1:
                return 500, {"error": {"message": "out of memory"}}
        cached = self._look_up(prompt)
        self.cached_total += cached
        usage: dict[str, Any] = {"prompt_tokens": len(prompt), "completion_tokens": 2}
        if self.reports:
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        if not body["stream"]:
            return {"choices": [{"message": {"content": "yes"}, "finish_reason": "length"}], "usage": usage}
        events = [
            {"choices": [{"delta": {"content": "yes"}, "text": "yes"}]},
            {"choices": [{"delta": {"content": " sir"}, "text": " sir", "finish_reason": "length"}]},
            {"choices": [], "usage": usage},
        ]
        return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"

    def _look_up(self, prompt: Sequence[str]) -> int:
        if not self.caches:
            return 0
        if self.whole_only:
            hit = len(prompt) - 1 if tuple(prompt) in self.kept else 0
            self.kept.add(tuple(prompt))
            return hit
        hit = 0
        for end in range(self.block, len(prompt), self.block):
            if tuple(prompt[:end]) not in self.kept:
                break
            hit = end
        self.kept.update(tuple(prompt[:end]) for end in range(self.block, len(prompt) + 1, self.block))
        return max(0, hit - self.loses)


class ToyEngine(OpenAIEngine):
    """The adapter of a `ToyServer`: shows token ids, takes them, and knows the server's counter."""

    name = "toy"
    takes_token_ids = True
    advice = {"cached_tokens": "start toy with --report", "metrics": "start toy with --metrics"}  # noqa: RUF012
    metrics = (Metric("cached_prompt_tokens", (HITS,), "counter", "cached tokens"),)
    ids: dict[str, int] = {}  # noqa: RUF012

    def chat_tokens(self, messages: ChatMessages, tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        words = [*HEAD, *messages[0]["content"].split(), *TAIL]
        return [self.ids.setdefault(word, len(self.ids)) for word in words]


class NoCollector:
    """Of a target without metrics."""

    samples: tuple[Sample, ...] = ()

    def settle(self, *_: object) -> bool:
        return False


def _body(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(request["body"])
    return body
