"""Mooncake's traces: JSON Lines with the ids of each prompt's blocks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import orjson

from harness.cache.base import Prompt
from harness.cache.block_references import block_hashes
from harness.traces.clock import Clock
from harness.traces.entry import BadEntry, check_keys, hash_ids, optional_seconds, optional_text, whole
from harness.traces.lines import read_lines
from harness.traces.request import Trace, TraceRequest

BLOCK_TOKENS = 512
"""Of the traces that Mooncake published."""
_MS_PER_S = 1000
_REQUIRED = ("timestamp", "input_length", "output_length", "hash_ids")
_OPTIONAL = ("session_id",)
_FILLER = -(2**63)


def read_mooncake(path: Path, block_tokens: int = BLOCK_TOKENS, skip_bad: bool = False) -> Trace:
    """The trace in `path`. An id of its `hash_ids` stands for a block of `block_tokens` and all that precedes it.

    The last block may be shorter. `timestamp` and `output_length` may be null, which is "not known"; times are known
    of all requests or of none. Raises InputError.
    """
    requests, skipped = read_lines(path, _Lines(block_tokens).request, skip_bad)
    return Trace(path.name, f"Mooncake, blocks of {block_tokens} tokens", block_tokens, requests, skipped)


def write_mooncake(path: Path, requests: Iterable[TraceRequest], block_tokens: int = BLOCK_TOKENS) -> None:
    """Write `requests` to `path`, sorted by time where every time is known.

    What they share in full blocks of `block_tokens` is what the file tells; its ids count from 0 in order of first
    use. `session_id` is written where it is known; what is not known of length and time is null.
    """
    ids: dict[int, int] = {}
    ordered = list(requests)
    if all(request.time_s is not None for request in ordered):
        ordered.sort(key=lambda request: request.time_s or 0.0)
    with path.open("wb") as file:
        for request in ordered:
            blocks = block_hashes(_filled_up(request.prompt, block_tokens), block_tokens)
            row: dict[str, object] = {
                "timestamp": None if request.time_s is None else round(request.time_s * _MS_PER_S),
                "input_length": request.prompt_tokens,
                "output_length": request.output_tokens,
                "hash_ids": [ids.setdefault(block, len(ids)) for block in blocks],
            }
            if request.session is not None:
                row["session_id"] = request.session
            file.write(orjson.dumps(row) + b"\n")


def _filled_up(prompt: Prompt, block_tokens: int) -> Prompt:
    """So that the partial last block has an id as well: equal for equal prompts, and of no other block."""
    lacking = -sum(tokens for _, tokens in prompt) % block_tokens
    return [*prompt, (_FILLER, lacking)] if lacking else prompt


class _Lines:
    """Makes requests of the lines, which must come in the order of time."""

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.clock = Clock("timestamp")

    def request(self, value: object) -> TraceRequest:
        entry = check_keys(value, _REQUIRED, _OPTIONAL)
        input_tokens = whole(entry, "input_length", 1)
        output_tokens = None if entry["output_length"] is None else whole(entry, "output_length", 1)
        session = optional_text(entry, "session_id")
        ids = hash_ids(entry)
        expected = -(-input_tokens // self.block_tokens)
        if len(ids) != expected:
            raise BadEntry(
                f"input_length {input_tokens} takes {expected} blocks of {self.block_tokens} tokens, "
                f"but hash_ids has {len(ids)} (--trace-block, or block_tokens in a scenario, says how long a block is)"
            )
        time_s = self.clock.passed_if_known(optional_seconds(entry, "timestamp", _MS_PER_S))
        last = input_tokens - (expected - 1) * self.block_tokens
        prompt = [(one, self.block_tokens) for one in ids[:-1]] + [(ids[-1], last)]
        return TraceRequest(time_s, prompt, output_tokens, session)
