"""kvswarm's own pages beside Locust's: live figures, and what became of each run. They need no other server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import gevent
from flask import Blueprint, Response, jsonify, request, send_from_directory

from harness.errors import InputError, KvswarmError, RecordError
from harness.record.manifest import Manifest
from harness.record.reader import read_manifest
from harness.record.run_directory import MANIFEST_NAME
from harness.record.storage import Folder
from harness.swarm.options import RUN_ID
from harness.swarm.report_file import NAME as REPORT

PLACE = "/kvswarm"
"""All of them are below it."""
ASSETS = Path(__file__).parent / "page"
PIECE_BYTES = 1 << 20

Have = Sequence[tuple[int, int]]


def add_pages(web_ui: Any, live: Callable[[str, Have], Any], results: str) -> None:
    """`live(run_id, have)` is asked for what a page lacks that has so many points of that run; `results` is where the
    runs lie."""
    base = web_ui.environment.parsed_options.web_base_path or ""
    blueprint = Blueprint("kvswarm", __name__, url_prefix=f"{base}{PLACE}")

    def live_json() -> Response:
        return jsonify(live(request.args.get("run", ""), _have(request.args.get("have", ""))))

    def report(run_id: str) -> Response:
        folder = _run(results, run_id)
        if folder.exists(REPORT):
            return Response(_pieces(folder, REPORT), content_type="text/html; charset=utf-8")
        return Response(_report(*_ended(results, run_id), "--html", "--to", "-"))

    def expected(run_id: str) -> Response:
        return jsonify(expected_windows(json.loads(_report(*_ended(results, run_id), "--json"))))

    for rule, view in (
        ("", lambda: send_from_directory(ASSETS, "live.html")),
        ("/assets/<name>", lambda name: send_from_directory(ASSETS, name)),
        ("/live.json", live_json),
        ("/runs/<run_id>", lambda run_id: send_from_directory(ASSETS, "run.html")),
        ("/runs/<run_id>/files/<path:name>", lambda run_id, name: _file(_run(results, run_id), name)),
        ("/runs/<run_id>/report", report),
        ("/runs/<run_id>/expected.json", expected),
    ):
        blueprint.add_url_rule(rule, rule.replace(".", "-") or "/", web_ui.auth_required_if_enabled(view))
    for kind, status in ((InputError, HTTPStatus.NOT_FOUND), (RecordError, HTTPStatus.INTERNAL_SERVER_ERROR)):
        blueprint.register_error_handler(kind, partial(_sentence, status))
    web_ui.app.register_blueprint(blueprint)


def _have(text: str) -> Have:
    """Such as 1.20-2.300: of each target, one point in so many, and how many of those."""
    try:
        return [(int(every), int(count)) for every, _, count in (one.partition(".") for one in text.split("-") if one)]
    except ValueError:
        return []


def _run(results: str, run_id: str) -> Folder:
    """Raises InputError if there is no such run."""
    if RUN_ID.fullmatch(run_id):
        folder = Folder.at(results).child(run_id)
        if folder.exists(MANIFEST_NAME):
            return folder
    raise InputError(f"There is no run {run_id} in {results}.")


def _manifest(folder: Folder) -> Manifest:
    return read_manifest(folder, fault=lambda _: None)


def _ended(results: str, run_id: str) -> tuple[str, int | None]:
    """(URL of the run, when it ended): as long as both are the same, so is its report."""
    folder = _run(results, run_id)
    return folder.url, _manifest(folder).ended_ns


def _file(folder: Folder, name: str) -> Response:
    """run.json, or a part that it lists; nothing else that may lie there. Raises InputError, RecordError."""
    parts = _manifest(folder).parts
    listed = {MANIFEST_NAME} | {part.name for parts_of_table in dict(parts).values() for part in parts_of_table}
    if name not in listed or not folder.exists(name):
        raise InputError(f"{name} is no file of this run.")
    response = Response(_pieces(folder, name), content_type="application/octet-stream")
    if name == MANIFEST_NAME:
        response.content_type = "application/json"
    else:
        response.headers["Content-Disposition"] = f'attachment; filename="{name.replace("/", "-")}"'
    return response


def _pieces(folder: Folder, name: str) -> Iterator[bytes]:
    pool = gevent.get_hub().threadpool
    with folder.filesystem.open_input_stream(f"{folder.path}/{name}") as stream:
        while piece := pool.apply(stream.read, (PIECE_BYTES,)):
            yield bytes(piece)


@lru_cache(maxsize=4)
def _report(url: str, ended_ns: int | None, *form: str) -> str:
    """The report as HTML or JSON, made by a process of its own: pandas would hold up the loop of this one.

    Raises RecordError. Another `ended_ns` is another report.
    """
    command = ["nice", "-n", "10", sys.executable, "-m", "harness.cli", "report", url, *form]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise RecordError(made.stderr.strip() or f"The report of {url} could not be made.")
    return made.stdout


def expected_windows(report: dict[str, Any]) -> dict[str, list[dict[str, float]]]:
    """What `kvswarm report --json` says of one run, by target: what hits the engine's cache rules led to expect.

    Of each window: start_s and end_s since the first measured request, prompt_tokens, and expected tokens of them.
    """
    by_target: dict[str, list[dict[str, float]]] = {}
    for target in report["runs"][0]["targets"]:
        steps = {window["key"]: window["steps"] for window in target["waterfall"]["by_window"]}
        by_target[target["target"]] = [
            {
                "start_s": window["start_s"],
                "end_s": window["end_s"],
                "prompt_tokens": steps[window["key"]]["prompt_tokens"],
                "expected": steps[window["key"]]["expected"],
            }
            for window in target["working_set"]
            if window["key"] in steps and steps[window["key"]]["expected"] is not None
        ]
    return by_target


def _sentence(status: HTTPStatus, error: KvswarmError) -> tuple[Response, HTTPStatus]:
    return Response(str(error), content_type="text/plain; charset=utf-8"), status
