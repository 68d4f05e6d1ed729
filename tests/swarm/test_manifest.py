"""run.json: what is known when a run starts, and what its end adds."""

from __future__ import annotations

import json

import pytest

from harness.engines.base import HitCounters, Identity
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target
from harness.record.manifest import Manifest
from harness.swarm.manifest import finish_manifest, first_manifest
from harness.swarm.options import RunOptions
from harness.swarm.plan import Drained
from harness.swarm.prepare import Preparation
from tests.swarm.fakes import URL, small_lexicon
from tests.workload.samples import agent_loop

COUNTERS = HitCounters(("hits_total",), ("prompt_total", "prompt"), prompt_includes_cached=True)
DRAINED = Drained("r1", 0, "drain", [["requests/part-0000-00000.parquet", 7]], 7, 0, 0, 0.5, 4.0, "")


class Counting(OpenAIEngine):
    hit_counters = COUNTERS


@pytest.fixture
def made() -> Preparation:
    target = Target(url=URL, headers={"X-Secret": "hush"})
    return Preparation(
        options=RunOptions("small", URL, "", "nonce", 2, 60.0, "results", "r1"),
        run_id="r1",
        scenario=agent_loop(),
        target=target,
        engine=Counting(target, "m"),
        identity=Identity("openai", "m", version="1.2"),
        lexicon=small_lexicon(),
        nonce="r1",
        cold_start="nonce: no earlier run sent these texts",
    )


def read_back(manifest: Manifest) -> Manifest:
    return Manifest.model_validate_json(manifest.model_dump_json())


def test_a_run_that_starts_is_described_whole(made: Preparation) -> None:
    manifest = read_back(first_manifest(made))
    assert (manifest.run_id, manifest.state, manifest.ended_ns) == ("r1", "running", None)
    assert manifest.options["drain_timeout_s"] == 60.0
    assert manifest.scenario == json.loads(agent_loop().model_dump_json())
    assert (manifest.identity["engine"], manifest.identity["version"]) == ("openai", "1.2")
    assert manifest.identity["capacity_tokens"] is None
    assert manifest.hit_counters is not None
    assert manifest.hit_counters.prompt == ("prompt_total", "prompt")
    assert manifest.lexicon["words"] == 16
    assert manifest.notes == ["a note"]
    assert {"python", "platform", "locust", "pyarrow"} <= set(manifest.versions)
    assert manifest.cold_start == made.cold_start


def test_headers_of_the_target_which_may_hold_a_key_are_not_kept(made: Preparation) -> None:
    text = first_manifest(made).model_dump_json()
    assert URL in text
    assert "hush" not in text


def test_a_good_end_lists_all_parts_and_workers(made: Preparation) -> None:
    manifest = first_manifest(made)
    requests = [("requests/part-master-00000.parquet", 2), *DRAINED.parts]
    finish_manifest(manifest, "stop", requests, [("server_metrics/part-00000.parquet", 90)], {"w-a": DRAINED}, [])
    manifest = read_back(manifest)
    assert (manifest.state, manifest.stopped_by, manifest.problems) == ("complete", "stop", [])
    assert [(part.name, part.rows) for part in manifest.parts.requests] == [tuple(part) for part in requests]
    assert [part.rows for part in manifest.parts.server_metrics] == [90]
    (worker,) = manifest.workers
    assert (worker.index, worker.id, worker.parts, worker.rows, worker.reason) == (0, "w-a", 1, 7, "drain")
    assert (worker.cpu_s, worker.wall_s) == (0.5, 4.0)
    assert [pair.where for pair in manifest.clock_pairs] == ["master start", "master end"]
    assert manifest.ended_ns is not None
    assert manifest.ended_ns >= manifest.started_ns


def test_a_lost_worker_is_told_from_one_without_rows(made: Preparation) -> None:
    manifest = first_manifest(made)
    idle = Drained("r1", 0, "drain", [], 0, 0, 0, 0.1, 4.0, "")
    finish_manifest(manifest, "run-time", [], [], {"w-a": idle, "w-b": None}, ["worker 1 was lost during the run"])
    manifest = read_back(manifest)
    assert manifest.state == "incomplete"
    assert manifest.problems == ["worker 1 was lost during the run"]
    first, second = manifest.workers
    assert (first.parts, first.rows, first.reason) == (0, 0, "drain")
    assert (second.index, second.parts, second.rows, second.cpu_s, second.reason) == (1, None, None, None, "lost")
