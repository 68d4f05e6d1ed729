"""Views that are made of other views: the requests whose times count, and sessions as a whole."""

from __future__ import annotations

from harness.record.bottleneck import CPU_SHARE, LAG_MS, SHORT_MS, STALL_MS

_MARKED = f"""
    SELECT run_id, worker, t_ns AS start_ns, t_ns + round_even(span_ms * 1e6, 0)::BIGINT AS end_ns
    FROM harness_health
    WHERE loop_lag_max_ms >= {STALL_MS}
       OR (span_ms >= {SHORT_MS} AND (loop_lag_p50_ms >= {LAG_MS} OR cpu_share >= {CPU_SHARE}))
"""
"""Seconds in which the harness was the bottleneck, as `harness.record.bottleneck` has it."""

COUNTED = f"""
    WITH marked AS ({_MARKED})
    SELECT r.* FROM (FROM requests WHERE phase = 'measure') AS r ANTI JOIN marked AS m
      ON m.run_id = r.run_id AND m.worker = r.worker
     AND m.end_ns > coalesce(r.t_send - round_even(coalesce(r.late_ms, 0) * 1e6, 0)::BIGINT, r.t_due)
     AND m.start_ns <= greatest(coalesce(r.t_send, r.t_due), r.t_first, r.t_last, r.t_end)
"""
"""The measured requests without those that were due or under way in such a second of their own worker.

NOT EXISTS would say the same, and make DuckDB keep all columns of all requests in memory.
"""

SESSIONS = """
    SELECT run_id, target, session,
           any_value(kind) AS kind, any_value(scenario) AS scenario, any_value(tenant) AS tenant,
           any_value(parent_request) AS parent_request,
           min(t_due) AS start_ns, max(t_end) AS end_ns,
           count(*) AS requests,
           count(*) FILTER (status = 'ok') AS ok,
           count(*) FILTER (status NOT IN ('ok', 'cancelled')) AS failed,
           count(*) FILTER (cached_tokens IS NOT NULL AND prompt_tokens IS NOT NULL) AS reporting,
           (sum(prompt_tokens) FILTER (cached_tokens IS NOT NULL))::BIGINT AS prompt_tokens,
           (sum(cached_tokens) FILTER (prompt_tokens IS NOT NULL))::BIGINT AS cached_tokens,
           sum(output_tokens)::BIGINT AS output_tokens,
           any_value(ttft_ms) FILTER (turn = 0) AS first_ttft_ms,
           count(*) FILTER (phase = 'measure') AS measured
    FROM requests
    WHERE session IS NOT NULL
    GROUP BY run_id, target, session
"""
"""One row for each session; the sums of prompt and cached tokens are over the requests that report both."""
