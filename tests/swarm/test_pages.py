"""kvswarm's own pages: complete without any other server, and no way to files that are none of a run's."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask

from harness.record.manifest import Part
from harness.record.run_directory import create
from harness.swarm.manifest import first_manifest
from harness.swarm.pages import ASSETS, Have, add_pages
from harness.swarm.prepare import Preparation
from tests.swarm.test_manifest import OPTIONS, lane
from tests.workload.samples import agent_loop

PART = "requests/part-0-0000-00000.parquet"


class Site:
    """The pages of a run `r1` with one part, and a file beside it that is no part."""

    def __init__(self, folder: Path, base: str | None = None) -> None:
        self.app = Flask("page")
        self.environment = SimpleNamespace(parsed_options=Namespace(web_base_path=base))
        self.asked: list[tuple[str, Have]] = []
        self.guarded = 0
        add_pages(self, self.live, str(folder))
        self.run = create(folder, "r1")
        record = first_manifest(Preparation(OPTIONS, "r1", "r1-ab12", agent_loop(), (lane("here"),)))
        record.parts.requests.append(Part(name=PART, rows=1))
        self.run.write_manifest(record)
        self.run.folder.write(PART, b"x" * 3_000_000)
        self.run.folder.write("requests/other.parquet", b"?")
        (folder / "secret").write_text("?")

    def auth_required_if_enabled(self, view: Any) -> Any:
        self.guarded += 1
        return view

    def live(self, run_id: str, have: Have) -> Any:
        self.asked.append((run_id, have))
        return {"about": run_id}

    def get(self, path: str) -> Any:
        return self.app.test_client().get(path)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_page_says_what_it_has(site: Site) -> None:
    assert site.get("/kvswarm/live.json?run=r1&have=1.20-4.300").json == {"about": "r1"}
    site.get("/kvswarm/live.json")
    site.get("/kvswarm/live.json?have=what-ever")
    assert site.asked == [("r1", [(1, 20), (4, 300)]), ("", []), ("", [])]


def test_run_json_and_the_parts_that_it_lists_can_be_had(site: Site) -> None:
    assert site.get("/kvswarm/runs/r1/files/run.json").json["run_id"] == "r1"
    answer = site.get(f"/kvswarm/runs/r1/files/{PART}")
    assert answer.data == b"x" * 3_000_000
    assert "attachment" in answer.headers["Content-Disposition"]


@pytest.mark.parametrize(
    "path",
    [
        "r1/files/requests/other.parquet",
        "r1/files/../secret",
        "r1/files/..%2fsecret",
        "r1/files//etc/passwd",
        "../files/secret",
        "..%2f/files/secret",
        "r2/files/run.json",
        "r2/report",
        "r2/expected.json",
        ".../report",
    ],
)
def test_nothing_else_can(site: Site, path: str) -> None:
    assert site.get(f"/kvswarm/runs/{path}").status_code in (404, 308)
    assert b"?" not in site.get(f"/kvswarm/runs/{path}").data


def test_the_report_is_made_once_by_another_process(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> Any:
        commands.append(command)
        return SimpleNamespace(returncode=0, stdout="<main>tables</main>", stderr="")

    monkeypatch.setattr("subprocess.run", run)
    assert [site.get("/kvswarm/runs/r1/report").text for _ in range(2)] == ["<main>tables</main>"] * 2
    assert [command[-5:] for command in commands] == [["report", site.run.url, "--html", "--to", "-"]]


def test_the_report_that_a_run_has_is_shown_as_it_is(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("subprocess.run")
    site.run.folder.write("report.html", b"<!doctype html>made")
    answer = site.get("/kvswarm/runs/r1/report")
    assert (answer.text, answer.content_type) == ("<!doctype html>made", "text/html; charset=utf-8")


def test_what_was_to_be_expected_is_told_window_by_window(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = [{"key": 0, "start_s": 0.0, "end_s": 2.0}, {"key": 1, "start_s": 2.0, "end_s": 4.0}]
    steps = [{"key": 1, "steps": {"prompt_tokens": 100, "expected": 80}}]
    known = {"target": "here", "working_set": windows, "waterfall": {"by_window": steps}}
    unknown = {"target": "there", "working_set": windows, "waterfall": {"by_window": []}}
    said = json.dumps({"runs": [{"targets": [known, unknown]}]})
    monkeypatch.setattr("subprocess.run", lambda *_, **__: SimpleNamespace(returncode=0, stdout=said))
    told = site.get("/kvswarm/runs/r1/expected.json").json
    assert told == {"here": [{"start_s": 2.0, "end_s": 4.0, "prompt_tokens": 100, "expected": 80}], "there": []}


def test_a_report_that_cannot_be_made_says_why(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(returncode=2, stdout="", stderr="kvswarm: run.json is damaged.\n")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: failed)
    answer = site.get("/kvswarm/runs/r1/report")
    assert (answer.status_code, answer.text) == (500, "kvswarm: run.json is damaged.")


def test_every_page_is_behind_locusts_login_and_below_its_base_path(tmp_path: Path) -> None:
    site = Site(tmp_path, base="/load")
    assert site.guarded == 7
    assert site.get("/kvswarm").status_code == 404
    assert site.get("/load/kvswarm").status_code == 200


@pytest.mark.parametrize("name", sorted(path.name for path in ASSETS.iterdir()))
def test_the_pages_need_no_other_server(site: Site, name: str) -> None:
    text = site.get(f"/kvswarm/assets/{name}").text
    assert set(re.findall(r"https?://[^\s\"']+", text)) <= {"http://www.w3.org/2000/svg"}  # the name of a language
    for used in re.findall(r"(?:from|src=|href=)\s*\"\.{1,2}/(?:kvswarm/)?(?:assets/)?([\w.]+)\"", text):
        assert (ASSETS / used).is_file()
