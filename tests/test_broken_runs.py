"""Runs that are not whole: each command says in a sentence what is wrong, and reads what is left if it is asked to."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.errors import KvswarmError
from tests.compare.conftest import record, turns
from tests.exchange.results import vllm_bench
from tests.record.test_upgrade import VERSION_1

__all__ = ["record"]
FIRST, SECOND = "requests/part-0000-00000.parquet", "requests/part-0000-00001.parquet"
COUNT = "SELECT count(ttft_ms) AS n FROM requests"
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "report": (["report"], []),
    "report --json": (["report"], ["--json"]),
    "report --html": (["report"], ["--html", "--to", "-"]),
    "query": (["query"], [COUNT, "--csv", "-"]),
    "compare": (["compare", "results/good"], []),
    "beside": (["beside"], ["theirs.json"]),
    "export": (["export", "openmetrics"], []),
    "trace export": (["trace", "export"], ["trace.jsonl"]),
}
"""Name -> the words before and behind the run."""
ALL = tuple(COMMANDS)


@pytest.fixture
def here(tmp_path: Path, record: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with results/good, and results/bad: 50 requests in parts of 30 and 20, for a test to spoil."""
    (tmp_path / "results").mkdir()
    for run_id in ("good", "bad"):
        shutil.move(record(run_id, turns(nonce=len(run_id))), tmp_path / "results" / run_id)
    bad = tmp_path / "results" / "bad"
    rows = pq.read_table(bad / FIRST)
    pq.write_table(rows.slice(0, 30), bad / FIRST)
    pq.write_table(rows.slice(30), bad / SECOND)
    change(bad, parts={"requests": [{"name": FIRST, "rows": 30}, {"name": SECOND, "rows": 20}], "server_metrics": []})
    (tmp_path / "theirs.json").write_text(json.dumps(vllm_bench()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def change(run: Path, **keys: Any) -> None:
    content = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(content | keys))


def typed(command: str, *runs: str, lenient: bool = False) -> tuple[int, str]:
    """(exit code, all that it printed) of a command about these runs, as a person types it."""
    before, behind = COMMANDS[command]
    words = [*before, *runs, *behind, *(["--lenient"] if lenient else [])]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    if isinstance(done.exception, KvswarmError):  # harness.cli.main prints it
        return done.exception.exit_code, f"{done.output}kvswarm: {done.exception}"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def half_a_part(bad: Path) -> None:
    (bad / SECOND).write_bytes((bad / SECOND).read_bytes()[:2_000])


def empty_file(bad: Path) -> None:
    (bad / SECOND).write_bytes(b"")


def missing_part(bad: Path) -> None:
    (bad / SECOND).unlink()


def part_of_another_run(bad: Path) -> None:
    shutil.copy(bad.parent / "good" / FIRST, bad / "requests" / "part-0001-00000.parquet")


def another_runs_part_in_its_place(bad: Path) -> None:
    pq.write_table(pq.read_table(bad.parent / "good" / FIRST).slice(30), bad / SECOND)


def other_number_of_rows(bad: Path) -> None:
    pq.write_table(pq.read_table(bad / SECOND).slice(5), bad / SECOND)


def newer_run_json(bad: Path) -> None:
    change(bad, format_version=99)


def newer_part(bad: Path) -> None:
    table = pq.read_table(bad / SECOND)
    pq.write_table(table.replace_schema_metadata({b"kvswarm.format_version": b"99"}), bad / SECOND)


DAMAGED: dict[str, tuple[Callable[[Path], None], str, int]] = {
    "half a part": (half_a_part, f"bad/{SECOND} is damaged: Parquet", 30),
    "an empty file": (empty_file, f"bad/{SECOND} is damaged: Parquet", 30),
    "a part is missing": (missing_part, f"bad/{SECOND} is missing; run.json says that it holds 20 rows", 30),
    "fewer rows": (other_number_of_rows, f"bad/{SECOND} holds 15 rows, run.json says 20", 45),
    "a part too many": (part_of_another_run, "part-0001-00000.parquet holds rows of another run, good", 50),
    "another run's part": (another_runs_part_in_its_place, f"bad/{SECOND} holds rows of another run, good", 30),
    "a newer run.json": (newer_run_json, "bad/run.json has format version 99, this kvswarm reads up to", 50),
    "a newer part": (newer_part, f"bad/{SECOND} has format version 99, this kvswarm reads up to", 50),
}
"""What -> (how it comes about, the sentence, rows that are left)."""


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_named_and_the_rest_is_read_if_asked_for(here: Path, what: str) -> None:
    spoil, sentence, left = DAMAGED[what]
    spoil(here / "results" / "bad")
    for command in ALL:
        code, said = typed(command, "results/bad")
        assert (code, sentence in said) == (2, True), (command, said)
        assert said.count("\n") == 0, command
        assert "--lenient reads what is there" in said
        assert ("install a newer kvswarm" if "newer" in what else "repair ") in said
    for command in ALL if what == "half a part" else ("report", "query"):
        code, said = typed(command, "results/bad", lenient=True)
        assert (code, sentence in _unwrapped(said)) == (0, True), (command, said)
    assert f'"n"\n{left}\n' in typed("query", "results/bad", lenient=True)[1]


def _unwrapped(text: str) -> str:
    """On one line, without the escapes of HTML and of JSON."""
    return " ".join(text.replace("&#x27;", "'").split())


@pytest.mark.parametrize("what", ["half a part", "a part is missing", "a part too many", "another run's part"])
def test_what_was_repaired_is_read_with_a_note(here: Path, what: str) -> None:
    DAMAGED[what][0](here / "results" / "bad")
    CliRunner().invoke(app, ["repair", "bad"], catch_exceptions=False)
    for command in ("report --json", "query"):
        code, said = typed(command, "results/bad")
        assert (code, "is incomplete" in _unwrapped(said)) == (0, True), (command, said)
    assert f'"n"\n{DAMAGED[what][2]}\n' in typed("query", "results/bad")[1]


def test_damage_within_a_part_names_it_when_it_is_read(here: Path) -> None:
    part = here / "results" / "bad" / SECOND
    content = bytearray(part.read_bytes())
    content[20:3_000] = bytes(2_980)
    part.write_bytes(content)
    for command in ALL:
        code, said = typed(command, "results/bad", lenient=True)
        assert (code, f"bad/{SECOND} is damaged within: " in said) == (2, True), (command, said)


def unfinished(bad: Path) -> None:
    change(bad, state="running", ended_ns=None, parts={"requests": [], "server_metrics": []})
    (bad / "requests" / ".tmp-part-0000-00002-0badcafe").write_bytes(b"PAR1")


def version_1(bad: Path) -> None:
    """As kvswarm wrote it when a run had one target, which rows called by its URL."""
    content = json.loads((bad / "run.json").read_text())
    url = VERSION_1["target"]["url"]
    kept = {key: content[key] for key in ("run_id", "options", "scenario", "scenario_name", "parts", "state")}
    identity = content["targets"][0]["identity"]
    (bad / "run.json").write_text(json.dumps(VERSION_1 | kept | {"identity": identity, "problems": []}))
    for name in (FIRST, SECOND):
        rows = pq.read_table(bad / name)
        place = rows.schema.get_field_index("target")
        rows = rows.set_column(place, rows.schema.field(place), pa.array([url] * len(rows)))
        pq.write_table(rows.replace_schema_metadata({b"kvswarm.format_version": b"1"}), bad / name)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [(unfinished, "The run has not ended, or its master was killed"), (version_1, "")],
    ids=["still going on", "format version 1"],
)
def test_what_is_whole_so_far_is_read_without_asking(here: Path, spoil: Callable[[Path], None], sentence: str) -> None:
    spoil(here / "results" / "bad")
    for command in ALL:
        code, said = typed(command, "results/bad")
        assert (code, sentence in _unwrapped(said)) == (0, True), (command, said)
    assert '"n"\n50\n' in typed("query", "results/bad")[1]


def test_an_empty_run_has_no_requests_and_says_so(here: Path) -> None:
    shutil.rmtree(here / "results" / "bad" / "requests")
    change(here / "results" / "bad", parts={"requests": [], "server_metrics": []})
    expected = {
        "report": (0, "no measured requests"),
        "report --json": (0, '"requests": 0'),
        "report --html": (0, "no measured request"),
        "query": (0, '"n"\n0\n'),
        "compare": (2, "bad has no measured request: there is nothing to compare."),
        "beside": (2, "no measured request"),
        "export": (2, "no measured request and no server metrics: there is nothing to export."),
        "trace export": (2, "no measured request"),
    }
    for command, (code, sentence) in expected.items():
        found, said = typed(command, "results/bad")
        assert (found, sentence in said) == (code, True), (command, said)


def no_run_json(bad: Path) -> None:
    (bad / "run.json").unlink()


def torn_run_json(bad: Path) -> None:
    (bad / "run.json").write_text('{"format_version"')


@pytest.mark.parametrize(
    ("spoil", "names", "sentence"),
    [
        (no_run_json, ["results/bad"], "results/bad/run.json is missing; "),
        (torn_run_json, ["results/bad"], "results/bad/run.json is damaged: it is not JSON"),
        (None, ["nothing"], "There is no run 'nothing': results/nothing/run.json does not exist"),
        (None, ["theirs.json"], "There is no run 'theirs.json'"),
        (None, ["results"], "results is no run, but a folder of runs: name one of its 2 runs, such as"),
    ],
    ids=["no run.json", "half a run.json", "a name of nothing", "a file", "a folder of runs"],
)
def test_what_is_no_run_is_told_from_one_in_need_of_repair(
    here: Path, spoil: Callable[[Path], None] | None, names: Sequence[str], sentence: str
) -> None:
    if spoil is not None:
        spoil(here / "results" / "bad")
    for command in ALL:
        for lenient in (False, True):
            code, said = typed(command, *names, lenient=lenient)
            assert (code, sentence in said) == (2, True), (command, said)
            assert spoil is None or "repair " in said


def test_a_run_that_is_named_twice_counts_once(here: Path) -> None:
    shutil.copytree(here / "results" / "bad", here / "results" / "copy")
    for command in ("report", "report --json", "report --html", "query"):
        assert "The run bad is named 2 times: name each run once." in typed(command, "results/bad", "bad")[1]
        code, said = typed(command, "results/bad", "results/copy")
        assert code == 2
        assert "The run bad is named 2 times (" in said
        assert "results/copy are copies of it): name each run once." in said
    assert typed("compare", "results/good") == (
        2,
        "kvswarm: good is named twice: compare it with another run.",
    )


def test_runs_of_different_scenarios_stand_side_by_side_and_are_not_compared(here: Path) -> None:
    change(here / "results" / "bad", scenario={"name": "other", "kind": "multi-round", "seed": 1})
    for command in ("report", "query"):
        assert typed(command, "results/bad", "results/good")[0] == 0, command
    code, said = typed("compare", "results/bad")
    assert code == 2
    assert "These runs do not mean the same: scenario: kind is agent-loop against multi-round" in said
    assert "--allow workload" in said
