"""The generator of big runs, small: the summary finds what it says it wrote."""

from __future__ import annotations

import pytest

from harness.analysis import Run, load
from harness.analysis.summary import summarise
from harness.record.schema import REQUESTS
from tests.bench.big_rows import RUN_ID, STATUSES, Truth
from tests.bench.big_run import write

REQUESTS_WRITTEN, SECONDS, WORKERS = 2_000, 40, 2


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Truth]:
    base = tmp_path_factory.mktemp("big")
    truth = write(base, REQUESTS_WRITTEN, SECONDS, WORKERS, seed=3, samples=20)
    return load(base / RUN_ID, modelled=300, all_requests=True), truth


def test_its_rows_are_as_the_schema_has_them(written: tuple[Run, Truth]) -> None:
    run, truth = written
    assert run.problems == ()
    table = run.recorded.requests()
    assert table.schema.equals(REQUESTS)
    assert not any(table[field.name].null_count for field in REQUESTS if not field.nullable)
    assert len(table) == truth.requests == REQUESTS_WRITTEN
    assert len(run.manifest.parts.requests) == WORKERS * 3  # of 15 s each


def test_the_summary_finds_what_was_written(written: tuple[Run, Truth]) -> None:
    run, truth = written
    summary = summarise(run.only_target())
    (group,) = (group for group in summary.groups if group.warmth == "all")
    statuses = dict(zip(STATUSES, truth.by_status.tolist(), strict=True))

    assert {"ok": group.times.ttft.n} | group.by_status == {name: n for name, n in statuses.items() if n}
    hits = summary.hit_rate
    assert (hits.reporting, hits.prompt_tokens, hits.cached_tokens) == (
        truth.reporting, truth.prompt_tokens, truth.cached_tokens,
    )  # fmt: skip
    counters = summary.counters
    assert (counters.prompt_tokens, counters.cached_tokens) == (
        int(truth.counted_prompt.sum()), int(truth.counted_cached.sum()),
    )  # fmt: skip
    assert summary.server.generated_tokens is not None
    assert summary.server.generated_tokens.value == int(truth.generated.sum())
    assert summary.agreement.prompt.difference == 0  # silent answers lack their cached tokens alone
    assert summary.contamination.crowd is None
    assert summary.coverage.modelled == 300
    assert run.measured.loc[run.measured["status"] == "ok", "ttft_ms"].sum() == pytest.approx(truth.ttft_ms_sum)


def test_seconds_of_a_stall_are_in_it(written: tuple[Run, Truth]) -> None:
    run, _ = written
    summary = summarise(load(run.recorded).only_target())
    assert len(summary.health.marked) == 2 * WORKERS
    assert 0 < summary.health.requests < REQUESTS_WRITTEN / 4
