"""What SQL sees of the runs, what it cannot reach, and the formats of an answer."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from harness.analysis import load
from harness.cli import app
from harness.errors import InputError, RecordError
from harness.query.answer import Answer
from harness.query.formats import MOST_APART
from harness.query.query import query
from harness.query.views import connect
from harness.record.reader import RecordedRun, open_run
from harness.record.storage import Folder
from tests.analysis.rows import Row
from tests.query.conftest import REQUEST_ROWS

Record = Callable[..., Path]


def ask(paths: list[Path], sql: str) -> list[dict[str, Any]]:
    with connect([open_run(path) for path in paths]) as connection:
        rows: list[dict[str, Any]] = [row for batch in Answer(connection, sql).batches() for row in batch.to_pylist()]
        return rows


def written(path: Path, sql: str, **files: str) -> str:
    """What is on the screen; `files`: format -> path."""
    out = io.StringIO()
    query([str(path)], sql, "results", files, Console(file=out, width=100))
    return out.getvalue()


def test_the_rows_of_several_runs_are_one_table(record: Record) -> None:
    sql = "SELECT run_id, count(*) n, sum(cached_tokens) hits FROM requests GROUP BY ALL ORDER BY ALL"

    assert ask([record("a"), record("b")], sql) == [{"run_id": name, "n": 8, "hits": 1369} for name in "ab"]


def test_a_run_that_is_named_twice_would_count_twice(record: Record) -> None:
    with pytest.raises(InputError, match="The run r1 is named 2 times: name each run once"):
        connect([open_run(record())] * 2)


def test_counted_has_the_requests_that_a_report_counts(record: Record, health: list[Row]) -> None:
    path = record(health=health)
    ids = [row["request_id"] for row in ask([path], "SELECT request_id FROM counted")]

    assert sorted(ids) == sorted(load(path).counted["request_id"])
    # Under way in second 103, of 102 to 103, 103 to 104: out. What was sent at 104 came when it was over.
    assert sorted(ids) == ["0-0", "0-2", "1-1", "1-2", "2-0"]


def test_a_session_has_its_sums_over_the_requests_that_report_both(record: Record) -> None:
    rows = ask([record()], "SELECT * EXCLUDE (start_ns, end_ns) FROM sessions ORDER BY session")

    assert [row["session"] for row in rows] == [0, 1, 2]
    assert rows[1] | {"run_id": "r1", "target": "t", "kind": "agent-loop"} == rows[1]
    assert (rows[1]["requests"], rows[1]["ok"], rows[1]["failed"], rows[1]["reporting"]) == (3, 2, 1, 2)
    assert (rows[1]["prompt_tokens"], rows[1]["cached_tokens"], rows[1]["first_ttft_ms"]) == (1200, 400, 70.0)
    assert (rows[2]["prompt_tokens"], rows[2]["cached_tokens"]) == (None, None)  # not reported is not 0


def test_a_part_without_a_later_column_and_one_with_an_unknown_one_are_read(record: Record) -> None:
    old, new = record("a"), record("b")
    for path in (old, new):
        part = next((path / "requests").iterdir())
        table = pq.ParquetFile(part).read()
        pq.write_table(
            table.drop_columns(["slot"]) if path == old else table.append_column("later", table["turn"]), part
        )
    sql = "SELECT run_id, count(*) n, count(slot) slots, count(later) later FROM requests GROUP BY ALL ORDER BY ALL"

    expected = [{"run_id": "a", "n": 8, "slots": 0, "later": 0}, {"run_id": "b", "n": 8, "slots": 0, "later": 7}]
    assert ask([old, new], sql) == expected
    (only_old,) = ask([old], "SELECT DISTINCT typeof(slot) kind FROM requests")
    assert only_old == {"kind": "INTEGER"}


def test_a_run_of_the_first_format_is_asked_like_one_of_today(record: Record) -> None:
    path = record(rows=[row | {"target": "http://t/v1"} for row in REQUEST_ROWS])
    content = json.loads((path / "run.json").read_text())
    (target,) = content.pop("targets")
    counters = {"cached": ["hits_total"], "prompt": ["queries_total"], "prompt_includes_cached": True}
    first = {"format_version": 1, "target": target["target"], "identity": target["identity"], "lexicon": {}}
    first |= {"hit_counters": counters, "cold_start": "nonce"}
    (path / "run.json").write_text(json.dumps(content | first))

    sql = "SELECT engine, cold_start, name, count(*) n FROM requests JOIN targets t USING (run_id, target, engine) "
    rows = ask([path], f"{sql} JOIN metric_names m USING (run_id, target) GROUP BY ALL ORDER BY name")
    assert rows == [
        {"engine": "e", "cold_start": "nonce", "name": name, "n": 8} for name in ("hits_total", "queries_total")
    ]


def test_a_run_without_rows_has_empty_views(record: Record) -> None:
    (row,) = ask([record(rows=[])], "SELECT count(*) n, sum(cached_tokens) hits FROM requests")

    assert row == {"n": 0, "hits": None}


def test_a_store_that_is_no_disk_is_read_as_well(record: Record) -> None:
    local = open_run(record())
    store = pyarrow.fs.SubTreeFileSystem(str(Path(local.folder.path).parent), pyarrow.fs.LocalFileSystem())
    run = RecordedRun(Folder("store/r1", store, "r1"), local.manifest, local.parts, ())
    with connect([run]) as connection:
        answer = Answer(connection, "SELECT sum(cached_tokens) hits, count(*) n FROM counted WHERE turn = 1")
        assert [batch.to_pylist() for batch in answer.batches()] == [[{"hits": 1360, "n": 2}]]


@pytest.mark.parametrize(
    "sql",
    ["FROM read_text('{other}')", "FROM '{other}'", "FROM read_csv('{other}')", "FROM glob('{other}')", "FROM store"],
)
def test_sql_reaches_nothing_but_the_runs(record: Record, tmp_path: Path, sql: str) -> None:
    store = tmp_path / "other.txt"
    store.write_text("a secret")
    with pytest.raises(InputError, match=r"^The query cannot be answered: (Permission|Catalog) Error: "):
        ask([record()], sql.format(other=store))


@pytest.mark.parametrize(
    ("sql", "is_"),
    [
        ("", "none"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("CREATE TABLE t AS SELECT 1", "a statement of type CREATE"),
        ("COPY (SELECT 1) TO '{part}'", "a statement of type COPY"),
        ("SET enable_external_access = true", "a statement of type SET"),
        ("ATTACH '{part}'", "a statement of type ATTACH"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO '{part}'", "a statement of type EXPLAIN"),
    ],
)
def test_a_query_only_reads(record: Record, sql: str, is_: str) -> None:
    path = record()
    (part,) = (path / "requests").iterdir()
    before = part.read_bytes()
    with pytest.raises(InputError, match=f"one statement that only reads .*, and this is {is_}"):
        ask([path], sql.format(part=part))

    assert part.read_bytes() == before


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELEC 1", 'Parser Error: syntax error at or near "SELEC"'),
        (
            "SELECT ttft FROM requests",
            'Referenced column "ttft" not found in FROM clause! Candidate bindings: .*ttft_ms',
        ),
        (
            "SELECT 1\nFROM request",
            r'^The query cannot be answered: Catalog Error: Table with name request does not exist! .*"requests"\?$',
        ),
        ("SELECT status::INT FROM requests", "Conversion Error: Could not convert string 'ok' to INT32"),
        ("SELECT error('no ' || status) FROM requests", "no ok"),
        ("SELECT 9e37::HUGEINT", "The query cannot be answered: "),
    ],
)
def test_what_cannot_be_answered_is_one_sentence_in_duckdbs_words(record: Record, sql: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        ask([record()], sql)

    assert "\n" not in str(caught.value)
    assert "LINE" not in str(caught.value)


def test_what_describes_the_views_is_a_query(record: Record) -> None:
    path = record()

    assert ask([path], "DESCRIBE requests")[0]["column_name"] == "run_id"
    assert {row["name"] for row in ask([path], "SHOW TABLES")} > {"requests", "runs"}


ROWS = "SELECT * FROM (VALUES (1, 'a|b', [1, NULL], 0.5), (NULL, '', NULL, 'inf'::DOUBLE)) AS t(n, text, list, x)"


def test_the_screen_has_a_table_in_which_null_is_a_word(record: Record) -> None:
    lines = [line.split() for line in written(record(), ROWS).splitlines()]

    assert lines[0] == ["n", "text", "list", "x"]
    assert lines[2:] == [["1", "a|b", "[1,", "null]", "0.5"], ["null", "null", "inf"]]


def test_two_columns_of_one_name_are_both_there_in_every_format(record: Record, tmp_path: Path) -> None:
    both = "FROM requests JOIN runs USING (run_id) WHERE requests.kind IS NOT NULL"
    sql = f"SELECT 1 AS a, 2 AS a_1, 3 AS a, requests.kind, runs.* {both} LIMIT 1"
    files = {kind: str(tmp_path / kind) for kind in ("csv", "parquet", "markdown", "json")}
    written(record(), sql, **files)
    (row,) = json.loads((tmp_path / "json").read_text())
    assert (row["a"], row["a_1"], row["a_2"], row["kind"], row["kind_1"]) == (1, 2, 3, "agent-loop", "agent-loop")
    assert pq.read_schema(tmp_path / "parquet").names == list(row)
    heading = (tmp_path / "csv").read_text().splitlines()[0]
    assert heading.split(",")[:4] == ['"a"', '"a_1"', '"a_2"', '"kind"']


def test_what_is_too_wide_for_a_table_is_shown_field_by_field(record: Record) -> None:
    text = written(record(), "SELECT * FROM requests ORDER BY request_id")
    lines = text.splitlines()
    assert lines[0] == "row 1"
    assert "  request_id             0-0" in [line.rstrip() for line in lines]
    assert "row 8" in lines
    assert "row 20" in written(record("b"), f"SELECT r.* FROM requests r, range({MOST_APART})")
    assert "The first 20 of 160 rows; --csv" in written(record("c"), f"SELECT r.* FROM requests r, range({MOST_APART})")


def test_the_screen_stops_at_a_thousand_rows_and_says_so(record: Record) -> None:
    text = written(record(), "FROM range(40_000)")

    assert text.splitlines()[-2].split() == ["999"]
    assert "The first 1,000 of 40,000 rows; --csv" in text


def test_csv_tells_null_from_an_empty_text(record: Record, tmp_path: Path) -> None:
    written(record(), ROWS, csv=str(tmp_path / "out.csv"))

    assert (tmp_path / "out.csv").read_text() == '"n","text","list","x"\n1,"a|b","[1, null]",0.5\n,"",,inf\n'


def test_json_has_null_and_a_text_for_infinity(record: Record, tmp_path: Path) -> None:
    path = record()
    written(path, ROWS, json=str(tmp_path / "out.json"))
    written(path, f"{ROWS} WHERE n = 5", json=str(tmp_path / "none.json"))

    rows = [{"n": 1, "text": "a|b", "list": [1, None], "x": 0.5}, {"n": None, "text": "", "list": None, "x": "inf"}]
    assert json.loads((tmp_path / "out.json").read_text()) == rows
    assert json.loads((tmp_path / "none.json").read_text()) == []


def test_markdown_escapes_what_would_break_its_table(record: Record, tmp_path: Path) -> None:
    written(record(), ROWS, markdown=str(tmp_path / "out.md"))
    lines = (tmp_path / "out.md").read_text().splitlines()

    assert lines == [
        "| n | text | list | x |",
        "| ---: | --- | --- | ---: |",
        r"| 1 | a\|b | [1, null] | 0.5 |",
        "| null |  | null | inf |",
    ]


def test_parquet_keeps_the_types_and_sums_are_whole_numbers(record: Record, tmp_path: Path) -> None:
    sql = "SELECT sum(turn) AS turns, any_value(itl_ms) AS itl_ms, make_timestamp_ns(min(t_due)) AS first FROM requests"
    written(record(), sql, parquet=str(tmp_path / "out.parquet"))
    table = pq.read_table(tmp_path / "out.parquet")

    assert [str(field.type) for field in table.schema] == ["int64", "list<element: float>", "timestamp[ns]"]
    assert table["turns"].to_pylist() == [6]


def test_a_file_appears_only_when_the_answer_is_complete(record: Record, tmp_path: Path) -> None:
    out = tmp_path / "out" / "a.csv"
    path = record()
    with pytest.raises(InputError, match=r"a\.csv cannot be written: No such file or directory"):
        written(path, "SELECT 1", csv=str(out))
    out.parent.mkdir()
    with pytest.raises(InputError, match="Conversion Error"):
        written(path, "SELECT status::INT FROM requests", csv=str(out), json=str(out.with_suffix(".json")))

    assert list(out.parent.iterdir()) == []


def test_a_damaged_part_is_named_and_repair_makes_the_rest_readable(record: Record) -> None:
    path = record()
    (part,) = (path / "requests").iterdir()
    shutil.copy(part, path / "requests" / "part-0001-00000.parquet")
    part.write_bytes(part.read_bytes()[:-10])
    with pytest.raises(RecordError, match=r"requests/part-0000-00000\.parquet is damaged"):
        ask([path], "SELECT count(*) n FROM requests")
    assert CliRunner().invoke(app, ["repair", str(path)]).exit_code == 0

    assert ask([path], "SELECT count(*) n FROM requests") == [{"n": 8}]


def test_the_command_prints_the_answer_and_notes_what_is_missing(record: Record) -> None:
    done = CliRunner().invoke(
        app, ["query", str(record(state="incomplete")), "SELECT count(*) AS n FROM requests", "--csv", "-"]
    )

    assert done.stdout == '"n"\n8\n'
    assert done.stderr == "Note: r1: The run is incomplete: some of its rows may be missing.\n"


def test_the_command_needs_a_run_and_one_format_at_most_on_stdout(record: Record) -> None:
    for words, sentence in (
        (["query", "SELECT 1"], "Name the runs, and then the query"),
        (["query", str(record()), "SELECT 1", "--csv", "-", "--json", "-"], "Only one format can go to -"),
    ):
        done = CliRunner().invoke(app, words)
        assert isinstance(done.exception, InputError)
        assert sentence in str(done.exception)
