"""Small traces, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MOONCAKE = [
    {"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]},
    {"timestamp": 1500, "input_length": 1024, "output_length": 7, "hash_ids": [0, 1]},
    {"timestamp": 1500, "input_length": 600, "output_length": 9, "hash_ids": [0, 3]},
]


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def call(t: float, tokens: int, ids: list[int], **more: object) -> dict[str, object]:
    """One request of an agentic trace with blocks of 64 tokens."""
    return {"t": t, "type": "n", "model": "m", "in": tokens, "out": 10, "hash_ids": ids, **more}


def sub_agent(t: float, duration_ms: int | None, requests: list[Any], name: str = "a1") -> dict[str, Any]:
    """A sub-agent in the list of its parent's requests; without a duration it runs in the background."""
    return {"t": t, "type": "subagent", "agent_id": name, "duration_ms": duration_ms, "requests": requests}


def agentic(path: Path, requests: list[Any], indent: int | None = None) -> Path:
    path.write_text(
        json.dumps({"id": "s", "block_size": 64, "hash_id_scope": "local", "requests": requests}, indent=indent)
    )
    return path


def chat(*messages: tuple[str, str], **more: object) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": content} for role, content in messages], **more}
