"""The examples of docs/results.md do what the page says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.analysis import Run
from tests.analysis.rows import request

MakeRun = Callable[..., Run]

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.fixture
def here(make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory with the run that the page speaks of."""
    made = make_run(
        [
            request(warmth="cold", ttft_ms=100.0, prompt_tokens=100, cached_tokens=0),
            request(warmth="warm", ttft_ms=20.0, prompt_tokens=100, cached_tokens=90),
            request(warmth="warm", ttft_ms=30.0, prompt_tokens=300, cached_tokens=None),
            request(warmth="warm", status="timeout", ttft_ms=1.0),
            request(phase="warmup", warmth="warm", ttft_ms=5_000.0),
        ]
    )
    source = tmp_path / made.manifest.run_id
    shutil.copytree(source, tmp_path / "results" / "20261129-163000-agent-loop")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("here")
def test_pandas_reads_the_parts() -> None:
    (example,) = (text for text in examples("python") if "read_parquet" in text)
    names: dict[str, Any] = {}
    *setup, last = example.strip().splitlines()
    exec("\n".join(setup), names)

    assert eval(last, names).to_dict() == {"cold": 100.0, "warm": 20.0}
    assert str(names["requests"]["t_first"].dtype) == "int64[pyarrow]"


@pytest.mark.usefixtures("here")
def test_kvswarm_loads_the_run() -> None:
    (example,) = (text for text in examples("python") if "run.counted" in text)
    names: dict[str, Any] = {}
    exec(example, names)

    assert len(names["run"].requests) == 5


@pytest.mark.usefixtures("here")
def test_kvswarm_summarises_it_from_some_columns() -> None:
    (example,) = (text for text in examples("python") if "summarise" in text)
    names: dict[str, Any] = {}
    *setup, last = example.strip().splitlines()
    exec("\n".join(setup), names)

    assert names["summary"].hit_rate.rate == 90 / 200
    assert eval(last.strip(), names)["ttft_ms"].tolist() == [100.0, 20.0, 30.0, 1.0]


@pytest.mark.optional
@pytest.mark.usefixtures("here")
def test_duckdb_answers_as_the_analysis_does() -> None:
    duckdb = pytest.importorskip("duckdb")
    (query,) = examples("sql")

    assert duckdb.sql(query).fetchall() == [
        ("run-1", "t", "cold", 1, 0, 100.0, 0.0, 1),
        # 90 of 100 tokens: the request of 300 tokens reports nothing and is left out.
        ("run-1", "t", "warm", 3, 1, 25.0, 0.9, 1),
    ]
