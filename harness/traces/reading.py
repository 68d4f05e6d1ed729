"""Any trace: which format a file has shows in its first request."""

from __future__ import annotations

from pathlib import Path

import orjson

from harness.errors import InputError
from harness.traces import messages, mooncake
from harness.traces.agentic import read_agentic
from harness.traces.entry import BadEntry, Entry
from harness.traces.lines import HOW_TO_GO_ON, nothing_left, numbered_lines, open_trace, parse_json
from harness.traces.messages import read_messages
from harness.traces.mooncake import read_mooncake
from harness.traces.request import Skipped, Trace

_MARKS = {"requests": "agentic", "messages": "messages", "hash_ids": "mooncake", "input_length": "mooncake"}
"""Key of the first object -> format."""
_EXPECTED = "expected lines with hash_ids (Mooncake) or messages (chat requests), or one object with requests (agentic)"


def read_trace(
    path: Path,
    *,
    mooncake_block_tokens: int = mooncake.BLOCK_TOKENS,
    messages_block_tokens: int | None = None,
    tokenizer: Path | None = None,
    skip_bad: bool = False,
) -> Trace:
    """The trace in `path`, in any of the three formats.

    The lengths of blocks are those of a Mooncake file's ids, and those that chat messages are cut into; an agentic file
    tells its own. `skip_bad` leaves out and counts what cannot be used. Raises InputError, which names file and place.
    """
    match _format(path, skip_bad):
        case "agentic":
            return read_agentic(path, _object(path), skip_bad)
        case "messages":
            return read_messages(path, messages_block_tokens or messages.BLOCK_TOKENS, tokenizer, skip_bad)
        case _:
            return read_mooncake(path, mooncake_block_tokens, skip_bad)


def _format(path: Path, skip_bad: bool) -> str:
    bad, first = 0, None
    for number, line in numbered_lines(path):
        if line.strip() == b"{":  # an object over many lines
            return "agentic"
        try:
            return _format_of(parse_json(line))
        except BadEntry as problem:
            if not skip_bad:
                raise InputError(f"{path}, line {number}: {problem}; {HOW_TO_GO_ON}") from None
            bad, first = bad + 1, first or f"line {number}: {problem}"
    raise nothing_left(path, Skipped(bad, first))


def _format_of(value: object) -> str:
    if isinstance(value, dict):
        for key, name in _MARKS.items():
            if key in value:
                return name
    raise BadEntry(f"not a request of a known format; {_EXPECTED}")


def _object(path: Path) -> Entry:
    with open_trace(path) as file:
        content = file.read()
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as problem:
        raise InputError(f"{path}, line {problem.lineno}: not valid JSON: {problem.msg}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: {_EXPECTED}")
    return value
