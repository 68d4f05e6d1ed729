"""Stand-ins for what a run talks to: replies, a client that hands them out, and an engine over a tokeniser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from locust.rpc import protocol

from harness.client.reply import Reply
from harness.client.row import Labels
from harness.engines.base import ChatMessages, Identity, ResetOutcome
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target
from harness.workload.lexicon import Lexicon
from harness.workload.template import Template
from harness.workload.words import CANDIDATES
from tests.workload.fake_target import FakeTarget

URL = "http://127.0.0.1:8000/v1"
MS = 1_000_000
LABELS = Labels(
    run_id="r1", target="here", target_number=1, engine="openai", model="m", scenario="small", kind="agent-loop",
    phase="measure", worker=3, cache_salt=None,
)  # fmt: skip


def reply(**changes: Any) -> Reply:
    """A good reply of 2 tokens; it was sent at 1,000 ms and arrived at 1,030 and 1,050 ms."""
    values: dict[str, Any] = {
        "status": "ok", "error": None, "http_status": 200, "finish_reason": "length", "text": " yes sir",
        "t_send": 1_000 * MS, "t_first": 1_030 * MS, "t_last": 1_050 * MS, "t_end": 1_060 * MS,
        "clock": "kernel", "clock_stepped": False, "stamp_error_ms": 0.0, "last_stamp_error_ms": 0.0,
        "connect_ms": None, "ttft_ms": 30.0, "tpot_ms": 20.0, "itl_ms": (20.0,), "e2e_ms": 60.0,
        "prompt_tokens": 100, "prompt_tokens_source": "usage", "output_tokens": 2, "output_tokens_source": "usage",
        "cached_tokens": 64, "cached_tokens_source": "usage", "first_tokens": 1,
        "queue_ms": None, "prefill_ms": None, "decode_ms": None, "chunks": 2, "coalesced": 0, "bytes": 500,
    }  # fmt: skip
    return Reply(**{**values, **changes})


def unsent(status: str, error: str) -> Reply:
    """A request of which nothing is known but that it failed."""
    lost = [name for name in Reply.__slots__ if name not in ("clock", "clock_stepped", "chunks", "coalesced", "bytes")]
    return reply(**{**dict.fromkeys(lost), "status": status, "error": error, "text": "", "chunks": 0, "bytes": 0})


class FakeClient:
    """Answers each request with the next of `replies`, and keeps the bodies and headers."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        self._replies = iter(replies)
        self.bodies: list[Mapping[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []

    def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str], on_reply: Callable[[Reply], None]
    ) -> Reply:
        assert path == "/chat/completions"
        self.bodies.append(body)
        self.headers.append(headers)
        answer = next(self._replies)
        on_reply(answer)
        return answer


class FakeEngine(OpenAIEngine):
    """Counts with a real tokeniser and asks no server."""

    takes_cache_salt = True
    pins_slots = True

    def __init__(
        self,
        target: Target,
        tokens: FakeTarget,
        context_tokens: int | None,
        reset: ResetOutcome,
        slots: int | None = None,
    ) -> None:
        super().__init__(target, target.model or "m")
        self._tokens = tokens
        self._context_tokens = context_tokens
        self._reset = reset
        self._slots = slots
        self.resets = 0

    def identify(self) -> Identity:
        return Identity("openai", self.model, version="1.2", context_tokens=self._context_tokens, slots=self._slots)

    def count_text(self, text: str) -> int | None:
        return self._tokens.count_text(text)

    def count_chat(self, messages: ChatMessages) -> int:
        return self._tokens.count_chat(messages)

    def chat_tokens(self, messages: ChatMessages, tools: Sequence[Mapping[str, Any]] = ()) -> list[int] | None:
        return self._tokens.tokens(self._tokens.template(messages))

    def reset_cache(self) -> ResetOutcome:
        self.resets += 1
        return self._reset


def through_locust(data: dict[str, Any]) -> Any:
    """`data` as it arrives when Locust sends it from one process to another."""
    message: Any = protocol.Message
    return message.unserialize(message("kind", data, "node").serialize()).data


def small_lexicon() -> Lexicon:
    """16 words, and a template of 3 tokens before, 5 between and 4 after the messages, openers of 1 token apart."""
    template = Template(
        opener_tokens=1,
        head={"system": 3, "user": 3},
        between=dict.fromkeys(("system>user", "user>assistant", "assistant>user"), 5),
        tail={"system": 4, "user": 4},
        head_known=True,
        reply_after_tail=False,
    )
    return Lexicon(CANDIDATES[:16], template, documents=(), corpus="", exact=True, notes=("a note",))
