"""run.json: what is known when a run starts, and what each leg and its end add."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engines.base import Identity, Metric, Need
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target
from harness.record.manifest import Manifest, Phase
from harness.swarm.cold_start import ColdStart
from harness.swarm.leg import Leg
from harness.swarm.manifest import finish_manifest, first_manifest, record_leg
from harness.swarm.options import RunOptions
from harness.swarm.plan import Drained
from harness.swarm.prepare import Lane, Preparation
from tests.swarm.fakes import URL, small_lexicon
from tests.workload.samples import agent_loop

DRAINED = Drained("r1", 0, 0, "drain", [["requests/part-0-0000-00000.parquet", 7]], 7, 0, 0, 0.5, 4.0, "")
OPTIONS = RunOptions("small", "", "here,there", False, None, 10.0, "", "nonce", 2, 60.0, "results", "r1")


class Counting(OpenAIEngine):
    metrics = (Metric("prompt_tokens", ("prompt_total", "prompt"), "counter", "prompt tokens"),)
    advice: dict[Need, str] = {"metrics": "start it with --metrics"}  # noqa: RUF012


def lane(name: str) -> Lane:
    target = Target(url=URL, name=name, headers={"X-Secret": "hush"}, metrics_urls=())
    return Lane(target, Counting(target, "m"), Identity("openai", "m", version="1.2"), small_lexicon())


@pytest.fixture
def made() -> Preparation:
    return Preparation(OPTIONS, "r1", "r1-ab12", agent_loop(), (lane("here"), lane("there")))


def read_back(manifest: Manifest) -> Manifest:
    return Manifest.model_validate_json(manifest.model_dump_json())


def ended_leg(made: Preparation, number: int, folder: Path, drained: dict[str, Drained], lost: int = 0) -> Leg:
    """A leg that is over, with the workers that said something and `lost` more."""
    leg = Leg(made, number, str(folder), runner=None)
    leg.planned = {name: index for index, name in enumerate([*drained, *(f"lost-{i}" for i in range(lost))])}
    leg.drained = drained
    leg.request_parts = [(f"requests/part-master-{number}-00000.parquet", 2)]
    leg.phases = [Phase(phase="measure", targets=leg.names, start_ns=5, end_ns=9)]
    leg.lanes[0].cold_start = ColdStart("r1", None, "nonce: no earlier run sent these texts")
    return leg


def test_a_run_that_starts_is_described_whole(made: Preparation) -> None:
    manifest = read_back(first_manifest(made))
    assert (manifest.run_id, manifest.state, manifest.ended_ns) == ("r1", "running", None)
    assert manifest.options["drain_timeout_s"] == 60.0
    assert manifest.scenario == json.loads(agent_loop().model_dump_json())
    assert {"python", "platform", "locust", "pyarrow"} <= set(manifest.versions)
    first, second = manifest.targets
    assert (first.name, second.name) == ("here", "there")
    assert (first.identity["engine"], first.identity["version"]) == ("openai", "1.2")
    assert first.identity["capacity_tokens"] is None
    assert first.metrics[0].names == ("prompt_total", "prompt")
    assert first.advice == {"metrics": "start it with --metrics"}
    assert first.lexicon["words"] == 16
    assert first.check is None


def test_notes_name_their_target_only_where_there_are_several(made: Preparation) -> None:
    assert first_manifest(made).notes == ["here: a note", "there: a note"]
    assert first_manifest(replace(made, lanes=made.lanes[:1])).notes == ["a note"]


def test_headers_of_the_target_which_may_hold_a_key_are_not_kept(made: Preparation) -> None:
    text = first_manifest(made).model_dump_json()
    assert URL in text
    assert "hush" not in text


def test_each_leg_adds_its_parts_phases_and_workers(made: Preparation, tmp_path: Path) -> None:
    manifest = first_manifest(made)
    record_leg(manifest, made, ended_leg(made, 0, tmp_path, {"w-a": DRAINED}))
    record_leg(manifest, made, ended_leg(made, 1, tmp_path, {"w-a": replace(DRAINED, leg=1, rows=8)}))
    finish_manifest(manifest, "stop", [])
    manifest = read_back(manifest)
    assert (manifest.state, manifest.stopped_by, manifest.problems) == ("complete", "stop", [])
    assert [part.rows for part in manifest.parts.requests] == [2, 2]
    assert [(phase.phase, phase.targets) for phase in manifest.phases] == [
        ("measure", ("here",)),
        ("measure", ("there",)),
    ]
    assert [record.cold_start for record in manifest.targets] == ["nonce: no earlier run sent these texts"] * 2
    first, second = manifest.workers
    assert (first.leg, first.index, first.id, first.parts, first.rows, first.reason) == (0, 0, "w-a", 1, 7, "drain")
    assert (first.cpu_s, first.wall_s) == (0.5, 4.0)
    assert (second.leg, second.index, second.id, second.rows) == (1, 0, "w-a", 8)
    assert [pair.where for pair in manifest.clock_pairs] == ["master start", "master end"]
    assert manifest.ended_ns is not None
    assert manifest.ended_ns >= manifest.started_ns


def test_a_lost_worker_is_told_from_one_without_rows(made: Preparation, tmp_path: Path) -> None:
    manifest = first_manifest(made)
    idle = replace(DRAINED, parts=[], rows=0)
    record_leg(manifest, made, ended_leg(made, 0, tmp_path, {"w-a": idle}, lost=1))
    finish_manifest(manifest, "run-time", ["worker 1 was lost during the run"])
    manifest = read_back(manifest)
    assert manifest.state == "incomplete"
    assert manifest.problems == ["worker 1 was lost during the run"]
    first, second = manifest.workers
    assert (first.parts, first.rows, first.reason) == (0, 0, "drain")
    assert (second.index, second.parts, second.rows, second.cpu_s, second.reason) == (1, None, None, None, "lost")
