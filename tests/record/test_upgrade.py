"""Runs that were recorded before a run could have several targets."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.errors import RecordError
from harness.record.manifest import Manifest
from harness.record.reader import open_run
from harness.record.schema import REQUESTS
from harness.record.upgrade import from_version_1

URL = "http://127.0.0.1:8080/v1"
WHY = "llama-server does not tell --cache-type-k and --cache-type-v"
VERSION_1: dict[str, Any] = {
    "format_version": 1,
    "kvswarm_version": "0.1.0",
    "run_id": "old",
    "state": "complete",
    "stopped_by": "run-time",
    "started_ns": 1_700_000_000_000_000_000,
    "ended_ns": 1_700_000_060_000_000_000,
    "options": {"scenario": "agent-loop", "target": URL},
    "scenario_name": "agent-loop",
    "scenario": {"name": "agent-loop"},
    "target": {"url": URL, "metrics_url": "http://127.0.0.1:8080/metrics", "name": "127.0.0.1:8080"},
    "identity": {
        "engine": "llama-cpp",
        "model": "tiny",
        "slots": 4,
        "kv_dtype": None,
        "details": {"n_vocab": "1954", "kv_dtype": WHY, "cache_ram": "llama-server does not tell --cache-ram"},
    },
    "hit_counters": {
        "cached": ["llamacpp:prompt_tokens_cached_total"],
        "prompt": ["llamacpp:prompt_tokens_total", "old_name"],
        "prompt_includes_cached": False,
    },
    "lexicon": {"words": 512},
    "versions": {"python": "3.11.7"},
    "clock_pairs": [{"where": "master start", "realtime_ns": 2, "monotonic_ns": 1}],
    "phases": [{"phase": "warmup", "start_ns": 3, "end_ns": 4}, {"phase": "measure", "start_ns": 5, "end_ns": 6}],
    "cold_start": "nonce: no earlier run sent these texts",
    "parts": {"requests": [{"name": "requests/part-0000-00000.parquet", "rows": 1}], "server_metrics": []},
    "workers": [],
    "problems": ["worker 1 was lost"],
    "notes": ["a note"],
    "started": "2023-11-14T22:13:20Z",
    "ended": "2023-11-14T22:14:20Z",
}


def test_its_one_target_is_called_by_its_url() -> None:
    manifest = Manifest.model_validate(from_version_1(VERSION_1))
    (target,) = manifest.targets

    assert (manifest.format_version, target.name, manifest.together) == (2, URL, False)
    assert target.target == VERSION_1["target"]
    assert target.lexicon == {"words": 512}
    assert target.cold_start == "nonce: no earlier run sent these texts"
    assert (target.advice, target.check) == ({}, None)
    assert [phase.targets for phase in manifest.phases] == [(URL,), (URL,)]


def test_all_that_is_not_of_the_target_stays_as_it_was() -> None:
    moved = {"format_version", "target", "identity", "hit_counters", "lexicon", "cold_start", "phases"}
    upgraded = from_version_1(VERSION_1)

    assert {key: upgraded[key] for key in VERSION_1 if key not in moved} == {
        key: value for key, value in VERSION_1.items() if key not in moved
    }
    assert [(phase["phase"], phase["start_ns"], phase["end_ns"]) for phase in upgraded["phases"]] == [
        ("warmup", 3, 4),
        ("measure", 5, 6),
    ]


def test_the_counters_keep_their_names_and_get_their_meanings() -> None:
    (target,) = Manifest.model_validate(from_version_1(VERSION_1)).targets

    assert [(metric.meaning, metric.names, metric.kind, metric.absent_is_zero) for metric in target.metrics] == [
        ("cached_prompt_tokens", ("llamacpp:prompt_tokens_cached_total",), "counter", False),
        ("computed_prompt_tokens", ("llamacpp:prompt_tokens_total", "old_name"), "counter", False),
    ]
    counters = VERSION_1["hit_counters"] | {"prompt_includes_cached": True}
    (target,) = Manifest.model_validate(from_version_1(VERSION_1 | {"hit_counters": counters})).targets
    assert [metric.meaning for metric in target.metrics] == ["cached_prompt_tokens", "prompt_tokens"]
    (target,) = Manifest.model_validate(from_version_1(VERSION_1 | {"hit_counters": None})).targets
    assert target.metrics == []


def test_reasons_for_what_is_not_known_move_to_where_they_belong() -> None:
    identity = from_version_1(VERSION_1)["targets"][0]["identity"]

    assert identity["unknown"] == {"kv_dtype": WHY}
    assert identity["details"] == {"n_vocab": "1954", "cache_ram": "llama-server does not tell --cache-ram"}
    assert (identity["engine"], identity["slots"]) == ("llama-cpp", 4)


def test_what_was_read_is_not_changed() -> None:
    before = copy.deepcopy(VERSION_1)
    from_version_1(VERSION_1)

    assert before == VERSION_1


def write_run(folder: Path, content: dict[str, Any], row: dict[str, Any]) -> None:
    """A run as version 1 wrote it: its rows name the target's URL."""
    (folder / "requests").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(content))
    table = REQUESTS.empty_table().from_pylist([row], schema=REQUESTS)
    old = table.replace_schema_metadata(REQUESTS.metadata | {b"kvswarm.format_version": b"1"})
    pq.write_table(old, folder / "requests" / "part-0000-00000.parquet")


def test_an_old_run_is_read_whole(tmp_path: Path, request_row: Callable[..., dict[str, Any]]) -> None:
    row = request_row(run_id="old", target=URL, cached_tokens=7, t_first=2**60 + 1)
    write_run(tmp_path / "old", VERSION_1, row)
    recorded = open_run("old", tmp_path)

    assert recorded.problems == ()
    assert recorded.requests().to_pylist() == [row]
    assert recorded.requests()["target"].to_pylist() == [target.name for target in recorded.manifest.targets]


@pytest.mark.parametrize("change", [{"target": "http://x"}, {"phases": None}, {"identity": None}])
def test_a_damaged_old_run_json_is_named(
    tmp_path: Path, request_row: Callable[..., dict[str, Any]], change: dict[str, Any]
) -> None:
    write_run(tmp_path / "old", VERSION_1 | change, request_row())

    with pytest.raises(RecordError, match=r"old/run\.json is damaged: it lacks what version 1 of it had"):
        open_run("old", tmp_path)
