"""One row of the request table, put together from the plan of a turn and what came back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.client.reply import Reply
from harness.workload.session import Segment, Turn


@dataclass(frozen=True, slots=True)
class Labels:
    """The columns that all rows of one worker's run share."""

    run_id: str
    target: str
    """Name of the target."""
    target_number: int
    """Its number within the run: the same session goes to each of a run's targets."""
    engine: str
    model: str
    scenario: str
    kind: str | None
    phase: str
    worker: int
    cache_salt: str | None


def warmth(turn: Turn) -> str:
    """cold: the first turn of its session; warm: a later one, most of whose prompt this session sent before."""
    return "cold" if turn.index == 0 else "warm"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was to be sent; None where a request belongs to no session."""

    request_id: str
    due_ns: int
    free_ns: int
    """When whoever sends it was through with what came before, be it before due_ns or after."""
    path: list[Segment]
    output_tokens: int
    user: int | None = None
    session: int | None = None
    turn: int | None = None
    warmth: str | None = None
    slot: int | None = None
    fault: str | None = None
    tenant: str | None = None
    parent_request: str | None = None
    """request_id of the request after whose answer the session began."""


def request_row(
    labels: Labels,
    asked: Asked,
    reply: Reply,
) -> dict[str, Any]:
    """All columns of `harness.record.schema.REQUESTS`; what is not known is None.

    Of a lag, what passed until the request's user was free is `blocked_ms`: nothing, where a turn is due after the end
    of the one before, or of a sub-agent. The rest is the harness's own.
    """
    lag_ms = None if reply.t_send is None or reply.clock_stepped else (reply.t_send - asked.due_ns) / 1e6
    blocked_ms = None if lag_ms is None else max(0.0, (asked.free_ns - asked.due_ns) / 1e6)
    ttft_due_ms = None if reply.t_first is None or reply.clock_stepped else (reply.t_first - asked.due_ns) / 1e6
    return {
        "run_id": labels.run_id,
        "target": labels.target,
        "engine": labels.engine,
        "model": labels.model,
        "scenario": labels.scenario,
        "kind": labels.kind,
        "phase": labels.phase,
        "worker": labels.worker,
        "user": asked.user,
        "session": asked.session,
        "turn": asked.turn,
        "warmth": asked.warmth,
        "request_id": asked.request_id,
        "parent_request": asked.parent_request,
        "t_due": asked.due_ns,
        "t_send": reply.t_send,
        "t_first": reply.t_first,
        "t_last": reply.t_last,
        "t_end": reply.t_end,
        "connect_ms": reply.connect_ms,
        "blocked_ms": blocked_ms,
        "late_ms": None if lag_ms is None or blocked_ms is None else lag_ms - blocked_ms,
        "lag_ms": lag_ms,
        "ttft_ms": reply.ttft_ms,
        "ttft_due_ms": ttft_due_ms,
        "tpot_ms": reply.tpot_ms,
        "itl_ms": reply.itl_ms,
        "e2e_ms": reply.e2e_ms,
        "clock": reply.clock,
        "stamp_error_ms": reply.stamp_error_ms,
        "last_stamp_error_ms": reply.last_stamp_error_ms,
        "coalesced": reply.coalesced,
        "clock_stepped": reply.clock_stepped,
        "planned_prompt_tokens": sum([segment.tokens for segment in asked.path]),
        "planned_output_tokens": asked.output_tokens,
        "prompt_tokens": reply.prompt_tokens,
        "prompt_tokens_source": reply.prompt_tokens_source,
        "output_tokens": reply.output_tokens,
        "output_tokens_source": reply.output_tokens_source,
        "first_tokens": reply.first_tokens,
        "cached_tokens": reply.cached_tokens,
        "cached_tokens_source": reply.cached_tokens_source,
        "queue_ms": reply.queue_ms,
        "prefill_ms": reply.prefill_ms,
        "decode_ms": reply.decode_ms,
        "path": [segment.content_id for segment in asked.path],
        "path_tokens": [segment.tokens for segment in asked.path],
        "path_levels": [segment.level for segment in asked.path],
        "fault": asked.fault,
        "tenant": asked.tenant,
        "cache_salt": labels.cache_salt,
        "replica": reply.replica,
        "slot": asked.slot,
        "status": reply.status,
        "error": reply.error,
        "http_status": reply.http_status,
        "finish_reason": reply.finish_reason,
        "chunks": reply.chunks,
        "bytes": reply.bytes,
    }
