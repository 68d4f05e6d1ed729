"""A finished run as OpenMetrics text: what stands in it, and that other programs take it."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from typer.testing import CliRunner

from harness.analysis.run import Run
from harness.cli import app
from harness.engines.base import Meaning
from harness.exchange.families import FAMILIES, SERVER
from harness.exchange.openmetrics import BOUNDS_S, lines, stored
from harness.exchange.run_series import series_of_run
from harness.record.manifest import MetricNames
from tests.analysis.rows import Row, request, scrape, target

MakeRun = Callable[..., Run]
SECOND = 10**9
BASE_NS = 1_700_000_000 * SECOND
RUNNING = MetricNames(meaning="running_requests", names=("running",), kind="gauge", counts="requests")
USAGE = MetricNames(meaning="kv_usage", names=("usage",), kind="gauge", counts="share")
CACHED = MetricNames(meaning="cached_prompt_tokens", names=("hits_total",), kind="counter", counts="tokens")


def answered(due_s: float, end_s: float, **changes: Any) -> Row:
    row = request(t_due=BASE_NS + round(due_s * SECOND), t_send=None, t_end=BASE_NS + round(end_s * SECOND))
    row |= {"prompt_tokens": 100, "cached_tokens": 50, "output_tokens": 10}
    return row | {"ttft_ms": 100.0, "tpot_ms": 20.0, "e2e_ms": 1_000.0} | changes


ROWS = [
    answered(0, 1),  # half of it cached: a hit
    answered(2, 8, cached_tokens=49, ttft_ms=101.0),  # less: a miss
    answered(3, 9, cached_tokens=None, output_tokens=None, tpot_ms=None),
    answered(4, 9, cached_tokens=None, prompt_tokens=None, status="timeout", output_tokens=3),
    request(t_due=BASE_NS + 11 * SECOND, t_send=None, status="refused"),
    answered(0, 1, phase="warmup"),
]
SCRAPES = [
    row
    for at_s, running, usage, hits in ((0, 1.0, 0.5, 1e6), (1, 2.0, 0.25, 1e6 + 80))
    for row in scrape(BASE_NS + at_s * SECOND, "periodic", {"running": running, "usage": usage, "hits_total": hits})
]


@pytest.fixture
def run(make_run: MakeRun) -> Run:
    return make_run(ROWS, SCRAPES, targets=[target(metrics=[RUNNING, USAGE, CACHED])])


def text_of(run: Run) -> str:
    return "".join(lines(series_of_run(run)))


def values(text: str, name: str, **labels: str) -> list[tuple[float, float]]:
    """(seconds after the base, value) of the samples of a name with these labels, in their order."""
    found = []
    for line in text.splitlines():
        whole = re.fullmatch(r"(\w+)\{(.*)\} (\S+) (\S+)", line)
        if (
            whole
            and whole[1] == name
            and all(f'{key}="{value}"' in whole[2].split(",") for key, value in labels.items())
        ):
            found.append((float(whole[4]) - BASE_NS / SECOND, float(whole[3])))
    return found


def test_requests_count_from_the_sample_after_their_end(run: Run) -> None:
    text = text_of(run)
    assert values(text, "kvswarm_requests_total", status="ok") == [(0, 0), (5, 1), (10, 3), (15, 3)]
    assert values(text, "kvswarm_requests_total", status="timeout") == [(0, 0), (5, 0), (10, 1), (15, 1)]
    assert values(text, "kvswarm_requests_total", status="refused")[-1] == (15, 1)


def test_a_hit_rate_follows_from_the_tokens_of_those_that_report_both(run: Run) -> None:
    text = text_of(run)
    assert values(text, "kvswarm_cached_tokens_total")[-1] == (15, 99)
    assert values(text, "kvswarm_prompt_tokens_total", cached="reported")[-1] == (15, 200)
    assert values(text, "kvswarm_prompt_tokens_total", cached="unreported")[-1] == (15, 100)
    assert values(text, "kvswarm_output_tokens_total")[-1] == (15, 23)


def test_times_of_hits_and_misses_are_histograms(run: Run) -> None:
    text = text_of(run)
    assert values(text, "kvswarm_ttft_seconds_count", cache="hit") == [(0, 0), (5, 1), (10, 1), (15, 1)]
    assert values(text, "kvswarm_ttft_seconds_sum", cache="miss")[-1][1] == pytest.approx(0.101)
    # A bound holds what equals it.
    assert values(text, "kvswarm_ttft_seconds_bucket", cache="hit", le="0.1")[-1] == (15, 1)
    assert values(text, "kvswarm_ttft_seconds_bucket", cache="hit", le="0.068")[-1] == (15, 0)
    assert values(text, "kvswarm_ttft_seconds_bucket", cache="miss", le="0.1")[-1] == (15, 0)
    assert values(text, "kvswarm_ttft_seconds_bucket", cache="miss", le="0.15")[-1] == (15, 1)
    # The third request has no TPOT, and what failed has no times at all.
    assert not values(text, "kvswarm_tpot_seconds_count", cache="unreported")
    assert values(text, "kvswarm_e2e_seconds_count", cache="unreported")[-1] == (15, 1)


def test_as_many_series_are_told_as_prometheus_keeps(run: Run) -> None:
    names = {line.rsplit(" ", 2)[0] for line in text_of(run).splitlines() if not line.startswith("#")}
    assert stored(series_of_run(run)) == len(names) > 100


def test_servers_figures_keep_their_own_times(run: Run) -> None:
    text = text_of(run)
    assert values(text, "kvswarm_server_running_requests") == [(0, 1), (1, 2)]
    assert values(text, "kvswarm_server_kv_usage_ratio") == [(0, 0.5), (1, 0.25)]
    assert values(text, "kvswarm_server_cached_prompt_tokens_total") == [(0, 1e6), (1, 1e6 + 80)]


def test_replicas_are_told_apart(make_run: MakeRun) -> None:
    samples = [row | {"replica": name} for name in ("a:1", "b:2") for row in SCRAPES]
    text = text_of(make_run(ROWS, samples, targets=[target(metrics=[RUNNING])]))
    assert values(text, "kvswarm_server_running_requests", replica="b:2") == [(0, 1), (1, 2)]


def test_who_answered_is_a_label_of_its_own_metric(make_run: MakeRun) -> None:
    who = {"engine": "e", "version": 'a"b\\c\nd', "model": None}
    text = text_of(make_run(ROWS, targets=[target(identity=who)]))
    (line,) = [line for line in text.splitlines() if line.startswith("kvswarm_run_info") and line.endswith("000.000")]
    assert r'scenario="demo",engine="e",version="a\"b\\c\nd",model="",kvswarm_version="0.1.0"} 1 ' in line


def test_what_was_not_measured_is_not_there(make_run: MakeRun) -> None:
    text = text_of(make_run([answered(0, 1, cached_tokens=None, output_tokens=None)]))
    for name in ("cached_tokens", "output_tokens", "server_running_requests"):
        assert f"kvswarm_{name}" not in text


def test_bounds_are_finer_than_what_they_tell() -> None:
    assert list(BOUNDS_S) == sorted(BOUNDS_S)
    assert max(high / low for low, high in pairwise(BOUNDS_S)) < 1.51
    assert (BOUNDS_S[0], BOUNDS_S[-1]) == (0.0001, 68.0)


def test_every_meaning_of_a_metric_has_a_family() -> None:
    assert SERVER.keys() == set(get_args(Meaning))
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_prometheus_client_reads_every_sample(run: Run) -> None:
    """Sample by sample: its parser takes one time of a histogram only."""
    text = text_of(run)
    comments = [line for line in text.splitlines() if line.startswith("#") and line != "# EOF"]
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    times = {line.rpartition(" ")[2] for line in samples}
    read = 0
    for at in times:
        page = [*comments, *(line for line in samples if line.endswith(f" {at}")), "# EOF\n"]
        in_order = "\n".join(sorted(page, key=_family_order))
        families = list(text_string_to_metric_families(in_order))  # type: ignore[no-untyped-call]
        read += sum(len(family.samples) for family in families)
    assert read == len(samples)


def _family_order(line: str) -> tuple[float, bool]:
    """By family, comments first."""
    if line == "# EOF\n":
        return math.inf, False
    names = [family.name for family in FAMILIES]
    word = line.split()[2] if line.startswith("#") else line.partition("{")[0]
    longest = max((name for name in names if word.startswith(name)), key=len)
    return names.index(longest), not line.startswith("#")


def test_prometheus_makes_blocks_of_it(run: Run, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool here (Debian: apt-get install --no-install-recommends prometheus)")
    file, blocks = tmp_path / "run.om", tmp_path / "blocks"
    done = CliRunner().invoke(
        app, ["export", "openmetrics", run.manifest.run_id, "--results", str(tmp_path), "--output", str(file)]
    )
    assert done.exit_code == 0, done.output
    assert "from 2023-11-14 22:13:20 to 2023-11-14 22:13:35 UTC" in done.output
    subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", file, blocks], check=True, capture_output=True
    )
    (blocks / "wal").mkdir()  # as any data directory has one
    dump = subprocess.run([promtool, "tsdb", "dump", blocks], check=True, capture_output=True, text=True).stdout
    samples = sum(not line.startswith("#") for line in file.read_text().splitlines())
    assert len(dump.splitlines()) == samples
    assert re.search(r'__name__="kvswarm_cached_tokens_total".* 99 1700000015000$', dump, re.MULTILINE)


def test_a_run_with_nothing_in_it_is_refused(make_run: MakeRun, tmp_path: Path) -> None:
    empty = make_run([])
    done = CliRunner().invoke(app, ["export", "openmetrics", empty.manifest.run_id, "--results", str(tmp_path)])
    assert "there is nothing to export" in str(done.exception)
