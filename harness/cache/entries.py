"""The cache of mlx-lm's server: a store of whole token sequences, the first one in is the first one out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.cache.base import Prompt
from harness.cache.held import NOTHING, Held
from harness.errors import InputError

Kind = Literal["assistant", "user", "system"]


@dataclass(frozen=True, slots=True)
class _Entry:
    held: Held
    kind: Kind


@dataclass(slots=True, eq=False)
class EntryAdmission:
    """A request that is served."""

    prompt: Held
    cached_tokens: int
    system_tokens: int
    computed_tokens: int
    """What its own copy of the KV cache has, for the limit in bytes: at first all of the entry that it comes from."""
    added_tokens: int
    """Of its first tokens, those that an entry has."""


class Entries:
    """The store of one server with plain KV caches, by the rules of mlx-lm 0.32.

    A prompt reuses the longest prefix that it shares with any entry, without its last token. A finished request adds
    one entry, prompt and whole output; entries that are its beginning are dropped. If there are more than `size`
    (`--prompt-cache-size`; None: without end), the oldest goes, by the time at which it was added: to be read does not
    make it younger.

    A chat whose last message is the user's also adds entries on its way, which its own final entry replaces: the
    system message (if not all of that was reused) and the prompt without its last token. Where a client hangs up, the
    latter stays. The oldest finished entry goes first unless these are more, the user's ones before system messages.

    `limit_bytes` (`--prompt-cache-bytes`) counts `bytes_per_token` for each token, and only when a request starts:
    then entries go until the rest fits beside what the requests under way hold. None: no limit.

    The real server dies of a prompt that equals an entry; here that is a hit like any other. Not modelled: requests
    with a seed or of /v1/completions that are given up, sliding windows and recurrent layers, draft models.
    """

    def __init__(self, size: int | None = 10, *, limit_bytes: int | None = None, bytes_per_token: int = 0) -> None:
        """Raises InputError for a negative size or limit, and for a limit in bytes without the size of a token."""
        if (size is not None and size < 0) or (limit_bytes is not None and (limit_bytes < 0 or bytes_per_token < 1)):
            raise InputError(
                f"There is no store of {size} entries and {limit_bytes} bytes at {bytes_per_token} bytes a token: give "
                "numbers from 0 on (None: no limit), and with a limit in bytes what a token takes."
            )
        self._size = size
        self._limit_bytes = limit_bytes
        self._bytes_per_token = bytes_per_token
        self._entries: list[_Entry] = []
        self._running: list[EntryAdmission] = []

    def admit(self, prompt: Prompt, *, system_tokens: int = 0) -> EntryAdmission:
        """Look the prompt up. `system_tokens`: how many of its first tokens the system message is.

        That number matters only while requests overlap or were given up.
        """
        wanted = Held.of(prompt)
        common, source = 0, NOTHING
        for entry in self._entries:
            shared = entry.held.common(wanted)
            if shared > common or (shared == common > 0 and entry.held.tokens < source.tokens):
                common, source = shared, entry.held
        cached = min(common, wanted.tokens - 1)
        admission = EntryAdmission(wanted, cached, system_tokens, computed_tokens=source.tokens, added_tokens=cached)
        self._running.append(admission)
        self._trim_bytes()
        return admission

    def peek(self, prompt: Prompt) -> int:
        """Cached tokens that `admit` would find now."""
        wanted = Held.of(prompt)
        common = max((entry.held.common(wanted) for entry in self._entries), default=0)
        return min(common, wanted.tokens - 1)

    def computed(self, admission: EntryAdmission, end: int) -> None:
        """The first `end` tokens of the prompt are there, as after a step of it: add the entries on the way."""
        ends: tuple[tuple[int, Kind], ...] = (
            (admission.system_tokens, "system"),
            (admission.prompt.tokens - 1, "user"),
        )
        for border, kind in ends:
            if admission.added_tokens < border <= end:
                self._insert(admission.prompt.first(border), kind)
                admission.added_tokens = border

    def prefilled(self, admission: EntryAdmission) -> None:
        self.computed(admission, admission.prompt.tokens)
        admission.computed_tokens = admission.prompt.tokens

    def finish(self, admission: EntryAdmission, output: Prompt) -> None:
        self._running.remove(admission)
        self._insert(admission.prompt.then(output), "assistant")

    def abandon(self, admission: EntryAdmission) -> None:
        self._running.remove(admission)

    def clear(self) -> None:
        self._entries = []

    @property
    def stored_tokens(self) -> int:
        """In all entries together; the server says nothing of it but in its log."""
        return sum(entry.held.tokens for entry in self._entries)

    def _insert(self, held: Held, kind: Kind) -> None:
        self._entries = [entry for entry in self._entries if not entry.held.begins(held)]
        self._entries.append(_Entry(held, kind))
        if self._size is not None and len(self._entries) > self._size:
            self._evict()

    def _trim_bytes(self) -> None:
        if self._limit_bytes is None:
            return
        active = sum(request.computed_tokens for request in self._running)
        limit = max(0, self._limit_bytes - active * self._bytes_per_token)
        while sum(entry.held.tokens for entry in self._entries) * self._bytes_per_token > limit:
            self._evict()

    def _evict(self) -> None:
        """Drop the oldest entry of the kind whose turn it is."""
        oldest: dict[Kind, _Entry] = {}
        counts: dict[Kind, int] = {"assistant": 0, "user": 0, "system": 0}
        for entry in self._entries:
            oldest.setdefault(entry.kind, entry)
            counts[entry.kind] += 1
        victim: Kind = "system"
        if counts["assistant"] and counts["assistant"] >= counts["user"]:
            victim = "assistant"
        elif counts["user"] and counts["user"] >= counts["system"]:
            victim = "user"
        self._entries.remove(oldest[victim])
