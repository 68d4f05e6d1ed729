"""The start-up check's verdict on an engine as it should be, and on one without a cache, which is then stopped."""

from __future__ import annotations

import time
from pathlib import Path

from harness.checks.by_hand import check_target
from tests.contract.subject import Subject, fresh_prompt


def test_an_engine_that_caches_passes(subject: Subject) -> None:
    check = check_target(subject.target).check
    assert check.verdict == "works", check.sentence
    assert check.granularity_tokens == subject.granularity_tokens
    assert [probe.name for probe in check.probes][:3] == ["cold", "repeat", "half"]
    for probe in check.probes:
        assert probe.prompt_tokens == 1024
        assert probe.expected_cached_tokens is not None
        least, greatest = probe.expected_cached_tokens, probe.expected_cached_tokens + probe.allowance_tokens
        assert probe.usage_cached_tokens in range(least, greatest + 1)
        assert probe.counter_cached_tokens == (probe.usage_cached_tokens if subject.has_counters else None)


def test_an_engine_without_a_cache_does_not(uncached: Subject) -> None:
    check = check_target(uncached.target).check
    assert check.verdict == "caching-off", check.sentence


def test_a_server_that_is_told_to_stop_leaves_no_process_behind(uncached: Subject) -> None:
    group = members(uncached.server.pid)
    assert uncached.server.pid in group
    uncached.server.process.terminate()
    uncached.server.process.wait(60)
    deadline = time.monotonic() + 60
    while members(uncached.server.pid):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    reply = uncached.ask(fresh_prompt(20))
    assert reply.status == "connect_error"
    assert reply.t_send is None


def members(group: int) -> set[int]:
    """The living processes of a process group."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, process_group = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        if int(process_group) == group and state != "Z":
            found.add(int(stat.parent.name))
    return found
