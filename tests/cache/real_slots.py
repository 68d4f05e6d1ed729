"""A real llama.cpp server beside the model of its cache and the model's twin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from harness.cache.base import Item
from harness.cache.slots import SlotAdmission, Slots
from harness.embedded.server import RunningServer
from tests.cache.plain_slots import PlainRequest, PlainSlots, Tokens
from tests.embedded.dialogue import post

VOCABULARY = range(300, 1500)
"""Token ids of words."""
SLOT_TOKENS = 512


@dataclass(frozen=True)
class Setting:
    """Options of a server; `context_tokens` 0: so much that each slot has `SLOT_TOKENS`."""

    slots: int
    cache_ram_mib: int
    kv_unified: bool = False
    context_tokens: int = 0
    seed: int = 1

    @property
    def options(self) -> dict[str, Any]:
        context_tokens = self.context_tokens or SLOT_TOKENS * self.slots
        chosen = {"slots": self.slots, "cache_ram_mib": self.cache_ram_mib, "kv_unified": self.kv_unified}
        return chosen | {"context_tokens": context_tokens}

    def __str__(self) -> str:
        kind = "unified-" if self.kv_unified else ""
        return f"{self.slots}-{kind}ctx{self.options['context_tokens']}-ram{self.cache_ram_mib}-seed{self.seed}"


@dataclass
class Together:
    """All three, request by request, and what each said of it: (slot, cached tokens)."""

    server: RunningServer
    model: Slots
    twin: PlainSlots
    expected: list[tuple[int | None, int]] = field(default_factory=list)
    by_twin: list[tuple[int | None, int]] = field(default_factory=list)
    measured: list[tuple[int, int]] = field(default_factory=list)

    def ask(self, prompt: Tokens, output_tokens: int, slot: int | None = None, cache_prompt: bool = True) -> Tokens:
        """Send a request and wait for its answer."""
        admission, request = self._admit(prompt, slot, cache_prompt)
        answer = post(self.server, "/completion", body(prompt, output_tokens, slot, cache_prompt))
        self._end(admission, request, answer, answer["tokens"])
        return tuple(answer["tokens"])

    @contextmanager
    def asking(self, prompt: Tokens, output_tokens: int) -> Iterator[None]:
        """A request that is under way, its prompt done, for as long as the block runs."""
        admission, request = self._admit(prompt, None, True)
        url = self.server.url.removesuffix("/v1") + "/completion"
        sent = body(prompt, output_tokens, None, True) | {"stream": True}
        with requests.post(url, json=sent, stream=True, timeout=60) as response:
            events = (json.loads(line[6:]) for line in response.iter_lines(chunk_size=1) if line)
            said = next(events)["tokens"]
            yield
            for event in events:
                said += event["tokens"]
        assert len(said) == output_tokens
        self._end(admission, request, event, said)

    def _admit(self, prompt: Tokens, slot: int | None, cache_prompt: bool) -> tuple[SlotAdmission, PlainRequest]:
        admission = self.model.admit(items(prompt), slot=slot, cache_prompt=cache_prompt)
        return admission, self.twin.start(prompt, slot, cache_prompt)

    def _end(self, admission: SlotAdmission, request: PlainRequest, answer: Any, said: Sequence[int]) -> None:
        self.model.prefilled(admission)
        self.model.finish(admission, items(said))
        self.twin.end(request, tuple(said))
        self.expected.append((admission.slot, admission.cached_tokens))
        self.by_twin.append((request.slot, request.cached))
        self.measured.append((answer["id_slot"], answer["timings"]["cache_n"]))


def together(server: RunningServer, setting: Setting) -> Together:
    per_token, per_state = state_bytes(server)
    host_bytes = None if setting.cache_ram_mib < 0 else setting.cache_ram_mib * 1024 * 1024
    whole = setting.options["context_tokens"]
    share = whole if setting.kv_unified else whole // setting.slots
    model = Slots(
        setting.slots,
        whole,
        host_bytes=host_bytes,
        bytes_per_token=per_token,
        bytes_per_state=per_state,
        unified=setting.kv_unified,
    )
    twin = PlainSlots(setting.slots, share, whole, host_bytes, per_token, per_state, setting.kv_unified)
    return Together(server, model, twin)


def state_bytes(server: RunningServer) -> tuple[int, int]:
    """Bytes of a slot's state: for each token, and besides.

    From the files of two states, each of which has 12 bytes of its own, and 4 for each token's id. The server is then
    as if it had just started, as each prompt begins with what slot 0 holds, which is not saved for its sake.
    """
    sizes = []
    for tokens in (20, 50):
        post(server, "/completion", body(VOCABULARY[:tokens], 1, 0, True))
        saved = post(server, "/slots/0?action=save", {"filename": "state"})
        assert saved["n_saved"] == tokens
        sizes.append(saved["n_written"] - 12 - 4 * tokens)
    per_token, rest = divmod(sizes[1] - sizes[0], 30)
    assert rest == 0
    post(server, "/slots/0?action=erase", {})
    return per_token, sizes[0] - 20 * per_token


def body(prompt: Sequence[int], output_tokens: int, slot: int | None, cache_prompt: bool) -> dict[str, Any]:
    asked = {"prompt": list(prompt), "n_predict": output_tokens, "return_tokens": True, "temperature": 0}
    return asked | {"id_slot": -1 if slot is None else slot, "cache_prompt": cache_prompt}


def items(tokens: Sequence[int]) -> list[Item]:
    return [(token, 1) for token in tokens]
