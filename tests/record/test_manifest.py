from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.record.manifest import ClockPair, HitCounters, Manifest, Phase, WorkerRecord

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def test_it_comes_back_from_json_as_it_was(manifest: Manifest) -> None:
    manifest.state = "incomplete"
    manifest.ended_ns = manifest.started_ns + 60_000_000_000
    manifest.hit_counters = HitCounters(cached=("a", "b"), prompt=("c",), prompt_includes_cached=False)
    manifest.clock_pairs.append(ClockPair(where="master start", realtime_ns=2, monotonic_ns=1))
    manifest.phases.append(Phase(phase="warmup", start_ns=1, end_ns=2))
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


def test_the_page_lists_every_key_of_run_json_and_no_other() -> None:
    section = PAGE.read_text().split("## run.json")[1].split("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    assert sorted(documented) == sorted([*Manifest.model_fields, *Manifest.model_computed_fields])
