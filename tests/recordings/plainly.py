"""A second reading of the recorded answers, with plain splitting and the json module; nothing of harness is used.

`python -m tests.recordings.plainly` prints the table in answers.json. A new recording goes into tests/fixtures, and its
line into the table, once it has been compared with the recording by eye.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[1] / "fixtures"
TABLE = Path(__file__).with_name("answers.json")
LONGEST_TEXT = 105


def body_of(wire: bytes) -> tuple[int, bytes]:
    """Status and body, the chunks put together."""
    head, body = wire.split(b"\r\n\r\n", 1)
    if b"transfer-encoding: chunked" in head.lower():
        chunked, body = body, b""
        while chunked:
            size_line, chunked = chunked.split(b"\r\n", 1)
            size = int(size_line, 16)
            body += chunked[:size]
            chunked = chunked[size + 2 :]
    return int(head.split()[1]), body


def short(text: str) -> str:
    """The text; of a long one its length and its hash."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{len(text)} characters, sha-256 {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def error_in(body: bytes) -> str:
    try:
        found = json.loads(body)
    except ValueError:
        return body.decode().strip()
    error = found.get("error", found)
    if isinstance(error, str):
        return error
    return str(error["message"]) if "message" in error else body.decode()


def answer_in(wire: bytes) -> dict[str, Any]:
    status, body = body_of(wire)
    if status != 200:
        return {"http": status, "error": error_in(body)}
    lines = [line[len(b"data: ") :] for line in body.split(b"\n") if line.startswith(b"data: ")]
    objects = [json.loads(line) for line in (lines or [body]) if line != b"[DONE]"]
    texts, outputs, token_ids, finish = [], 0, 0, None
    counts: dict[str, Any] = {}
    for one in objects:
        for choice in one["choices"]:
            said = choice.get("delta", choice.get("message", choice))
            text = said.get("content", said.get("text")) or ""
            ids = choice.get("token_ids") or []
            texts.append(text)
            outputs += bool(text or ids or said.get("reasoning") or said.get("reasoning_content"))
            token_ids += len(ids)
            finish = choice["finish_reason"] or finish
        usage, timings = one.get("usage") or {}, one.get("timings") or {}
        told = {
            "prompt": usage.get("prompt_tokens", timings["cache_n"] + timings["prompt_n"] if timings else None),
            "output": usage.get("completion_tokens", timings.get("predicted_n")),
            "cached": (usage.get("prompt_tokens_details") or {}).get("cached_tokens", timings.get("cache_n")),
            "prefill_ms": timings.get("prompt_ms"),
            "decode_ms": timings.get("predicted_ms"),
        }
        counts |= {name: count for name, count in told.items() if count is not None}
    whole = lines[-1:] == [b"[DONE]"] or not lines
    answer = {
        "status": "ok" if whole else "truncated",
        "chunks": outputs,
        "finish": finish,
        "text": short("".join(texts)),
        **counts,
    }
    if "output" not in answer:
        answer |= {"output": token_ids or outputs, "output_by": "token_ids" if token_ids else "events"}
    return answer


def table() -> dict[str, dict[str, Any]]:
    """By folder and name, such as vllm/03-chat-cold."""
    paths = sorted(FIXTURES.glob("*/*.response.http"))
    return {f"{path.parent.name}/{path.name.partition('.')[0]}": answer_in(path.read_bytes()) for path in paths}


if __name__ == "__main__":
    rows = [f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in table().items()]
    print("{\n" + ",\n".join(rows) + "\n}")
