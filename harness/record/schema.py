"""The tables of a run: every column with its type, unit, meaning, and what null means in it.

Version history of the format (run.json and all tables):

    1   first version
    2   several targets in a run: run.json lists them as `targets`, and `target` in both tables is a target's name

A version rises when a reader of the version before would misread a run: a column or key renamed, removed or given
another meaning. New nullable columns, new keys and new tables do not raise it.

Each field's metadata holds `description`, `unit` (empty: none) and `null` (what null means; empty: never null).
The schema's metadata holds `kvswarm.format_version`, `kvswarm.table` and `kvswarm.sorted_by`, the time column by
which the rows of a part are ordered.
"""

from __future__ import annotations

import pyarrow as pa

FORMAT_VERSION = 2

_TEXT = pa.string()
_INT32 = pa.int32()
_INT64 = pa.int64()
_FLOAT = pa.float64()
_BOOL = pa.bool_()


def _list(kind: pa.DataType) -> pa.DataType:
    # Parquet's own name for the items, so that what is read equals what was written.
    return pa.list_(pa.field("element", kind))


EPOCH_NS = "ns since the epoch"
"""Unit of every column of times."""

_NEVER_SENT = "the request was not sent"
_NO_OUTPUT = "no output arrived"
_NO_ERROR = "no output arrived, or the clock is user, whose error nobody knows"
_STEPPED = "a stamp is missing, or the clock was stepped"
_UNREPORTED = "not reported; never the same as 0"
_NO_TICK = "the row is shorter than 50 ms"
_SESSIONLESS = "belongs to no session (phase check)"
_NOBODYS = f"{_SESSIONLESS}, or was refused"


def _column(name: str, kind: pa.DataType, description: str, *, unit: str = "", null: str = "") -> pa.Field:
    return pa.field(name, kind, nullable=bool(null), metadata={"description": description, "unit": unit, "null": null})


def _table(name: str, sorted_by: str, columns: list[pa.Field]) -> pa.Schema:
    return pa.schema(
        columns,
        metadata={
            "kvswarm.format_version": str(FORMAT_VERSION),
            "kvswarm.table": name,
            "kvswarm.sorted_by": sorted_by,
        },
    )


def _ms(name: str, description: str, null: str = _STEPPED) -> pa.Field:
    return _column(name, _FLOAT, description, unit="ms", null=null)


def _stamp(name: str, description: str, null: str = "") -> pa.Field:
    return _column(name, _INT64, description, unit=EPOCH_NS, null=null)


def _tokens(name: str, description: str, null: str) -> pa.Field:
    return _column(name, _INT32, description, unit="tokens", null=null)


REQUESTS = _table(
    "requests",
    "t_due",
    [
        _column("run_id", _TEXT, "the run"),
        _column("target", _TEXT, "name of the target that the request went to"),
        _column("engine", _TEXT, "engine that answers there, by the name of its adapter"),
        _column("model", _TEXT, "model that was asked for"),
        _column("scenario", _TEXT, "name of the scenario"),
        _column("kind", _TEXT, "kind of session: agent-loop, long-document, multi-round or replay", null=_SESSIONLESS),
        _column("phase", _TEXT, "check, warmup, ramp or measure; results come from measure alone"),
        _column("worker", _INT32, "number of the worker that sent it; -1 is the master"),
        _column("user", _INT32, "number of the simulated user within the worker", null=_NOBODYS),
        _column("session", _INT64, "number of the session within the run", null=_SESSIONLESS),
        _column("turn", _INT32, "number of the turn within the session, from 0", null=_SESSIONLESS),
        _column("warmth", _TEXT, "cold: first turn of its session; warm: a later turn", null=_SESSIONLESS),
        _column("request_id", _TEXT, "unique within the run; also sent to the engine"),
        _column("parent_request", _TEXT, "request_id of the request that spawned this one's session", null="none"),
        _stamp("t_due", "when the schedule wanted it sent"),
        _stamp("t_send", "just before the first byte of the request was written", _NEVER_SENT),
        _stamp("t_first", "arrival of the first non-empty output", _NO_OUTPUT),
        _stamp("t_last", "arrival of the last output", _NO_OUTPUT),
        _stamp("t_end", "arrival of the end of the stream, or of the server's close", "neither arrived"),
        _ms("connect_ms", "time to open the connection, before t_send", "an open connection was used"),
        _ms("blocked_ms", "part of lag_ms spent waiting for the turn before, for a sub-agent, or for a free user"),
        _ms("late_ms", "part of lag_ms that is the harness's own fault"),
        _ms("lag_ms", "t_send - t_due = blocked_ms + late_ms"),
        _ms("ttft_ms", "time to first token: t_first - t_send"),
        _ms("ttft_due_ms", "t_first - t_due: what the user waited, all delays included"),
        _ms(
            "tpot_ms",
            "time per output token: (t_last - t_first) / (output_tokens - first_tokens)",
            "a stamp or a count is missing, the divisor is 0, or the clock was stepped",
        ),
        _column(
            "itl_ms",
            _list(pa.float32()),
            "inter-token latencies: gaps between consecutive output chunks",
            unit="ms",
            null=_STEPPED,
        ),
        _ms("e2e_ms", "t_end - t_send"),
        _column("clock", _TEXT, "who stamped the arrivals: kernel (SO_TIMESTAMPNS) or user", null=_NEVER_SENT),
        _ms("stamp_error_ms", "upper bound of how much too late t_first is", _NO_ERROR),
        _ms("last_stamp_error_ms", "upper bound of how much too late t_last is", _NO_ERROR),
        _column("coalesced", _INT32, "output chunks that came in one read with an earlier one, and share its stamp"),
        _column("clock_stepped", _BOOL, "the clock was set during the request; durations are null", null=_NEVER_SENT),
        _tokens("planned_prompt_tokens", "length of the prompt by the plan, template included", "not planned"),
        _tokens("planned_output_tokens", "length of the answer that was asked for", "not planned"),
        _tokens("prompt_tokens", "length of the prompt as counted by prompt_tokens_source", _UNREPORTED),
        _column("prompt_tokens_source", _TEXT, "who counted: usage, the engine in its answer", null="no count"),
        _tokens("output_tokens", "length of the answer as counted by output_tokens_source", _UNREPORTED),
        _column(
            "output_tokens_source",
            _TEXT,
            "who counted: usage (the engine), token_ids (in the stream) or events (one a chunk)",
            null="no count",
        ),
        _tokens("first_tokens", "tokens in the first output chunk; 1 unless the engine says otherwise", _NO_OUTPUT),
        _tokens("cached_tokens", "prompt tokens that the engine reports as served from its cache", _UNREPORTED),
        _column("cached_tokens_source", _TEXT, "who counted: usage, the engine in its answer", null="no count"),
        _ms("queue_ms", "time in the queue by the engine's own clock", _UNREPORTED),
        _ms("prefill_ms", "time of the prefill by the engine's own clock", _UNREPORTED),
        _ms("decode_ms", "time of the decode by the engine's own clock", _UNREPORTED),
        _column("path", _list(_INT64), "content ids of the prompt's segments, in order", null="not planned"),
        _column("path_tokens", _list(_INT32), "lengths of the segments of path", unit="tokens", null="not planned"),
        _column(
            "path_levels",
            _list(_TEXT),
            "levels of the segments of path: a level's name of the sharing tree, or what else a segment is",
            null="not planned, or not recorded",
        ),
        _column("fault", _TEXT, "arrangement fault put into the prompt", null="none"),
        _column("tenant", _TEXT, "tenant that the session belongs to", null="none"),
        _column("cache_salt", _TEXT, "cache salt sent with the request", null="none"),
        _column("replica", _TEXT, "replica that answered, by the header that the target names", null="not known"),
        _column("slot", _INT32, "slot of the engine that answered", null="not known"),
        _column(
            "status",
            _TEXT,
            "ok, http_error, connect_error, stream_error, truncated (no proof of a complete stream), timeout, "
            "cancelled (by the end of the test, or as its user was taken away) or refused (not sent: the harness was "
            "out of capacity)",
        ),
        _column("error", _TEXT, "what went wrong, in words", null="nothing"),
        _column("http_status", _INT32, "status of the HTTP response", null="no response"),
        _column("finish_reason", _TEXT, "why the engine stopped: stop, length, ...", null="not reported"),
        _column("chunks", _INT32, "output chunks that arrived"),
        _column("bytes", _INT64, "length of the response's body as it arrived, without framing", unit="bytes"),
    ],
)
"""One row for each request, failures included."""

SERVER_METRICS = _table(
    "server_metrics",
    "t_ns",
    [
        _column("run_id", _TEXT, "the run"),
        _stamp("t_ns", "when the page was read; all samples of one scrape share it"),
        _column("moment", _TEXT, "check, before, warmup_end, periodic or after; the last scrape of a moment counts"),
        _column("target", _TEXT, "name of the target whose metrics were read"),
        _column("replica", _TEXT, "which of the target's metrics pages", null="the only one"),
        _column("name", _TEXT, "name of the sample as on the page; up and scrape_duration_seconds tell of the scrape"),
        _column("family", _TEXT, "name of the metric that the sample belongs to"),
        _column("type", _TEXT, "counter, gauge, histogram, summary or unknown, as the page declares it"),
        _column("labels", pa.map_(_TEXT, _TEXT), "labels of the sample"),
        _column("value", _FLOAT, "value of the sample"),
        _column(
            "reset",
            _BOOL,
            "the server was restarted since the series was seen last, so that its count began again",
            null="no cumulative series, or one that was not there before",
        ),
        _column("error", _TEXT, "why the scrape failed; stands on the sample up, whose value is then 0", null="none"),
    ],
)
"""One row for each sample of each scrape; each scrape has the sample `up`, which says whether it failed."""

_OF_THE_MASTER = "the row is the master's, which sends no load"

HARNESS_HEALTH = _table(
    "harness_health",
    "t_ns",
    [
        _column("run_id", _TEXT, "the run"),
        _column("worker", _INT32, "number of the worker whose process it is; -1 is the master"),
        _stamp("t_ns", "when the row's time began"),
        _column("span_ms", _FLOAT, "how long it lasted: a second, longer where the event loop was held up", unit="ms"),
        _ms("loop_lag_p50_ms", "how late the event loop came to an instant every 50 ms, median", _NO_TICK),
        _ms("loop_lag_max_ms", "the same, of the latest", _NO_TICK),
        _column("cpu_share", _FLOAT, "CPU time of the process, all threads, user and system / span_ms; 1 is a core"),
        _column("gc_pauses", _INT32, "runs of Python's garbage collector"),
        _column("gc_pause_ms", _FLOAT, "how long they held up the process, together", unit="ms"),
        _column("gc_longest_ms", _FLOAT, "the longest of them; 0: there was none", unit="ms"),
        _column("socket_errors", _INT32, "requests whose connection could not be opened, or broke"),
        _column("live_sessions", _INT32, "sessions under way when the row ended", null=_OF_THE_MASTER),
        _column("streams", _INT32, "requests under way when the row ended", null=_OF_THE_MASTER),
        _column("rows_waiting", _INT32, "rows of requests not yet written when the row ended", null=_OF_THE_MASTER),
        _column("rss_bytes", _INT64, "memory of the process in RAM", unit="bytes", null="the system does not tell"),
    ],
)
"""One row for each second and process of the load: each worker, and the master if it is a process of its own."""

TABLES = {"requests": REQUESTS, "server_metrics": SERVER_METRICS, "harness_health": HARNESS_HEALTH}
"""Folder of a run's directory -> schema of its parts."""
