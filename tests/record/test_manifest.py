from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from harness.record.manifest import (
    ClockPair,
    Manifest,
    MetricNames,
    Phase,
    Probe,
    StartUpCheck,
    TargetRecord,
    WorkerRecord,
)

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def test_it_comes_back_from_json_as_it_was(manifest: Manifest) -> None:
    manifest.state = "incomplete"
    manifest.ended_ns = manifest.started_ns + 60_000_000_000
    manifest.targets[0].metrics = [
        MetricNames(meaning="kv_usage", names=("a", "b"), kind="gauge", counts="share", labels={"pool": "full"})
    ]
    probe = Probe(
        name="cold",
        prompt_tokens=100,
        expected_cached_tokens=0,
        usage_cached_tokens=None,
        counter_cached_tokens=0,
        ttft_ms=12.5,
    )
    manifest.targets[0].check = StartUpCheck(
        verdict="works", sentence="It works.", granularity_tokens=16, probes=(probe,)
    )
    manifest.clock_pairs.append(ClockPair(where="master start", realtime_ns=2, monotonic_ns=1))
    manifest.phases.append(Phase(phase="warmup", targets=("t",), start_ns=1, end_ns=2))
    manifest.workers.append(
        WorkerRecord(index=0, id="w", parts=None, rows=None, cpu_s=None, wall_s=None, reason="lost")
    )
    manifest.add_parts("requests", [("requests/a.parquet", 3), ["requests/b.parquet", 4]])

    assert Manifest.model_validate_json(manifest.model_dump_json()) == manifest


def test_times_are_also_there_for_people(manifest: Manifest) -> None:
    assert json.loads(manifest.model_dump_json())["started"] == "2023-11-14T22:13:20Z"
    assert json.loads(manifest.model_dump_json())["ended"] is None


def test_a_key_of_a_later_kvswarm_is_no_error(manifest: Manifest) -> None:
    content = json.loads(manifest.model_dump_json()) | {"mood": "good"}
    assert Manifest.model_validate(content) == manifest


def test_an_unknown_state_is_refused(manifest: Manifest) -> None:
    with pytest.raises(ValidationError):
        manifest.state = "finished"  # type: ignore[assignment]


def test_two_targets_of_one_name_are_refused(manifest: Manifest) -> None:
    with pytest.raises(ValidationError, match="the names of the targets must differ, found t, t"):
        manifest.targets = [*manifest.targets, *manifest.targets]


def test_a_metric_without_a_name_is_refused() -> None:
    with pytest.raises(ValidationError):
        MetricNames(meaning="kv_usage", names=(), kind="gauge", counts="share")


def documented(heading: str) -> list[str]:
    """Keys of the table below a heading of docs/results.md."""
    section = re.split(r"\n#+ ", PAGE.read_text().split(f"\n{heading}\n")[1])[0]
    return re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)


def test_the_page_lists_every_key_of_run_json_and_no_other() -> None:
    assert sorted(documented("## run.json")) == sorted([*Manifest.model_fields, *Manifest.model_computed_fields])


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("### A target", TargetRecord),
        ("### A metric", MetricNames),
        ("### A start-up check", StartUpCheck),
        ("### A probe", Probe),
    ],
)
def test_the_page_lists_every_key_of_what_belongs_to_a_target(heading: str, model: type[BaseModel]) -> None:
    assert documented(heading) == list(model.model_fields)
