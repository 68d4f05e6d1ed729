"""Another tool's figures next to ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.analysis.run import Run
from harness.cli import app
from harness.record.manifest import Phase
from tests.analysis.rows import Row, request, target
from tests.exchange.results import aiperf, guidellm, guidellm_benchmark, inference_perf

MakeRun = Callable[..., Run]
BASE_NS = 1_700_000_000_000_000_000
MEASURE = Phase(phase="measure", targets=("t",), start_ns=BASE_NS, end_ns=BASE_NS + 2_000_000_000)


def answered(first_ms: int, last_ms: int, n: int, **changes: Any) -> Row:
    stamps = {"t_send": 0, "t_first": first_ms, "t_last": last_ms, "t_end": last_ms + 10}
    row = request(**{name: BASE_NS + ms * 1_000_000 for name, ms in stamps.items()}, t_due=BASE_NS)
    row |= {"clock_stepped": False, "output_tokens": n, "prompt_tokens": 100, "cached_tokens": 80}
    row |= {"ttft_ms": float(first_ms), "tpot_ms": (last_ms - first_ms) / (n - 1), "e2e_ms": last_ms + 10.0}
    return row | changes


ROWS = [answered(100, 300, 11), answered(200, 500, 31), answered(100, 300, 11, cached_tokens=None)]


def invoke(run: Run, file: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["beside", run.manifest.run_id, str(file), "--results", str(file.parent), *words])


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Any], Path]:
    def write(content: Any) -> Path:
        file = tmp_path / "theirs.json"
        file.write_text(json.dumps(content))
        return file

    return write


def lines_of(make_run: MakeRun, file: Path) -> dict[tuple[str, str], tuple[Any, Any, Any]]:
    done = invoke(make_run(ROWS, phases=[MEASURE]), file, "--json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)
    return {
        (line["figure"], line["statistic"]): (line["theirs"], line["as_theirs"], line["ours"])
        for line in found["lines"]
    }


def test_their_definition_and_ours_stand_next_to_what_they_say(
    make_run: MakeRun, written: Callable[[Any], Path]
) -> None:
    lines = lines_of(make_run, written(guidellm(guidellm_benchmark())))
    # ITL of theirs is our TPOT, but weighted: 20, 10 and 20 ms with 10, 30 and 10 tokens.
    assert lines["itl", "mean"] == (4.0, pytest.approx(14.0), pytest.approx(50 / 3))
    assert lines["itl", "p50"] == (8.0, 10.0, 20.0)
    # TPOT of theirs holds the TTFT: (300 + 500 + 300) ms over 53 tokens; none of ours is near it.
    assert lines["tpot", "mean"] == (6.0, pytest.approx(1100 / 53), None)
    assert lines["requests", "per s"] == (2.0, 1.5, 1.5)


def test_hit_rate_and_goodput_are_said_where_the_file_has_them(
    make_run: MakeRun, written: Callable[[Any], Path]
) -> None:
    lines = lines_of(make_run, written(aiperf()))
    assert lines["hit rate", "share"] == (0.625, None, 0.8)
    assert lines["good requests", "per s"] == (2.5, None, None)
    # From the first request sent to the last output: 0.5 s.
    assert lines["requests", "per s"] == (3.0, 6.0, 1.5)


def test_the_table_says_how_each_figure_is_defined(make_run: MakeRun, written: Callable[[Any], Path]) -> None:
    done = invoke(make_run(ROWS, phases=[MEASURE]), written(inference_perf()))
    assert done.exit_code == 0, done.output
    for words in (
        "inference-perf: 9 successful requests, 1 that failed or were cut off.",
        "tpot: (t_last - t_first) / (n - 1), where n > 1.",
        "ntpot: (t_end - start) / n: TTFT included; 0 where n is 0.",
        "Not told, or told in its own way:\n  which version wrote it",
        "\n  in its cached tokens",
        "for you to know: no file says enough.",
    ):
        assert words in done.output
    assert done.output.count("told in its own way") == 1
    table = [line.split() for line in done.output.splitlines()]
    assert ["ttft", "mean", "100", "133", "133", "ttft_ms"] in table
    assert ["hit", "rate", "share", "50.0", "%", "-", "80.0", "%", "cached_tokens"] in table


def test_each_load_of_a_file_stands_beside_each_target(make_run: MakeRun, written: Callable[[Any], Path]) -> None:
    run = make_run([*ROWS, *(row | {"target": "u"} for row in ROWS)], targets=[target("t"), target("u")])
    done = invoke(run, written(guidellm(guidellm_benchmark(), guidellm_benchmark())), "--json")
    found = [(one["measured"]["where"].rpartition(", ")[2], one["target"]) for one in json.loads(done.stdout)]
    assert found == [(f"benchmark {number} of 2 (constant)", name) for number in (1, 2) for name in ("t", "u")]


def test_a_file_of_nobody_is_refused_before_the_run_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    done = CliRunner().invoke(app, ["beside", "no-such-run", str(tmp_path / "x.json")])
    assert "x.json is no result file" in str(done.exception)
