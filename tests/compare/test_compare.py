"""Recorded runs held against each other: what may be compared, what is, and what a person or a program is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from harness.cli import app
from harness.compare.compare import Comparison, compare
from harness.compare.effect import Effect
from harness.compare.measures import compare_rows
from harness.errors import InputError, RecordError
from tests.analysis.rows import second, target
from tests.compare.conftest import IDENTITY, SESSIONS, turn, turns

Record = Callable[..., str]


@pytest.fixture(autouse=True)
def _fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for differences as plain as these."""
    monkeypatch.setattr("harness.compare.compare.compare_rows", partial(compare_rows, number=200))


def held(*words: str, **options: Any) -> Comparison:
    return compare(words, "results", **options)


def effect(comparison: Comparison, name: str, side: int = 0) -> Effect:
    return next(one for one in comparison.against[side].effects if one.name == name)


def command(*words: str) -> Result:
    return CliRunner().invoke(app, ["compare", *words], env={"COLUMNS": "100"})


def refusal(*words: str, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        held(*words, **options)
    return str(caught.value)


def test_two_runs_of_one_workload_are_compared_whatever_their_texts_were(record: Record) -> None:
    found = held(record("a"), record("b", turns(120.0, nonce=5_000), identity={"version": "0.28"}))

    assert found.sides == (("A", "a"), ("B", "b"))
    assert [(one.what, one.values, one.unknown) for one in found.differences] == [("version", ("0.27", "0.28"), False)]
    assert f"b: the same lengths and the same sharing in all {2 * SESSIONS} requests" in found.workload
    assert (found.is_paired, found.requests, found.sessions) == (True, ((50, 50), (50, 50)), SESSIONS)
    paired = effect(found, "ttft_paired_ratio")
    assert paired.effect == pytest.approx(1.2)
    assert paired.verdict == "higher"
    assert effect(found, "hit_rate_diff").verdict == "none"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kv_dtype", "fp8"),
        ("model", "n"),
        ("tokenizer_fingerprint", "c"),
        ("template_fingerprint", "c"),
        ("adapter", "lora"),
    ],
)
def test_what_changes_the_meaning_is_refused_until_it_is_named(record: Record, name: str, value: str) -> None:
    before = IDENTITY.get(name) or "none"
    runs = record("a"), record("b", identity={name: value})

    sentence = (
        f"These runs do not mean the same: {name} is {before} against {value}; to compare them all the same, add "
    )
    assert refusal(*runs) == f"{sentence}--allow {name}"
    assert refusal(*runs, allowed=["workload"]).startswith("These runs do not mean the same")
    assert effect(held(*runs, allowed=[name]), "ttft_p50_ratio").effect == 1.0


def test_of_three_sides_a_refusal_says_which_is_which(record: Record) -> None:
    runs = record("a"), record("b"), record("c", identity={"kv_dtype": "fp8"})
    assert refusal(*runs).startswith("These runs do not mean the same: kv_dtype is bf16 in A, bf16 in B, fp8 in C; to")


def test_what_one_side_does_not_tell_may_differ_and_is_said(record: Record) -> None:
    found = held(record("a"), record("b", identity={"kv_dtype": None, "details": {"scheduler": "lpm"}}))

    told = {one.what: (one.values, one.unknown) for one in found.differences}
    assert told == {"kv_dtype": (("bf16", "-"), True), "scheduler": (("fcfs", "lpm"), False)}


def test_an_automatic_kv_type_is_not_told_and_two_of_them_are_alike(record: Record) -> None:
    vague = record("b", identity={"kv_dtype": "auto"})
    one = held(record("a"), vague)
    assert [(each.values, each.unknown, each.override) for each in one.differences] == [(("bf16", "auto"), True, None)]
    assert held(vague, record("c", identity={"kv_dtype": "auto"})).differences == ()
    refused = refusal(record("d"), vague, record("e", identity={"kv_dtype": "fp8"}))
    assert "kv_dtype is bf16 in A, auto in B, fp8 in C;" in refused


def test_another_load_or_another_scenario_is_another_question(record: Record) -> None:
    first, busier, longer = record("a"), record("b", options={"users": 8}), record("c", scenario={"steps": 3})
    renamed = record("d", scenario={"name": "other", "description": "the same"}, options={"run_time_s": 60.0})

    assert refusal(first, busier).endswith("load: users is 4 against 8; to compare them all the same, add --allow load")
    assert refusal(first, longer).endswith(
        "scenario: steps is 2 against 3; to compare them all the same, add --allow workload"
    )
    assert held(first, renamed).differences == ()
    found = held(first, longer, allowed=["workload"])
    assert not found.is_paired
    assert "another scenario" in found.workload


def test_requests_that_were_not_the_same_are_noticed_though_the_scenario_is(record: Record) -> None:
    first = record("a")
    longer = [row | {"planned_output_tokens": 9} if row["session"] == 3 else row for row in turns(nonce=5_000)]
    unshared = [
        row | {"path": [row["path"][0], 900_000 + row["session"], *row["path"][2:]]} for row in turns(nonce=5_000)
    ]
    counts = "of 50 requests {} have other lengths, and {} share something else; to compare them all the same: "

    assert counts.format(2, 0) in refusal(first, record("b", longer))
    assert counts.format(0, 48) in refusal(first, record("c", unshared))
    assert "no request of one was sent in the other" in refusal(
        first, record("d", [row | {"path": None} for row in turns()])
    )


def test_what_the_engine_said_and_the_pieces_of_its_template_may_differ(record: Record) -> None:
    def live(template: int, reply: int) -> list[dict[str, Any]]:
        levels = ["chat template", "system prompt", "user message", "earlier reply"]
        return [
            row | {"path_tokens": [template, 50, 20, reply], "path_levels": levels} for row in turns() if row["turn"]
        ]

    first, second = (
        record(name, live(*lengths), scenario={"replies": "live"}) for name, lengths in (("a", (3, 9)), ("b", (5, 8)))
    )
    assert held(first, second).is_paired
    scripted = [record(name, live(3, reply)) for name, reply in (("c", 9), ("d", 8))]
    assert "25 have other lengths" in refusal(*scripted)


def test_only_requests_that_all_runs_measured_are_compared(record: Record) -> None:
    """A faster server plays more sessions in the same time, and its later ones have no counterpart."""
    found = held(record("a"), record("b", turns(sessions=40)), record("c", turns(sessions=30)))

    assert found.requests == ((50, 50), (50, 80), (50, 60))
    assert [one.side for one in found.against] == ["B", "C"]
    cancelled = [row | {"status": "cancelled"} for row in turns()]
    sentence = "has no measured request: there is nothing to compare"
    assert sentence in refusal(record("d"), record("e", cancelled))
    assert "no measured request" in refusal(
        record("f"), record("g", [row | {"phase": "warmup"} for row in turns()]), allowed=["workload"]
    )


def test_repeated_runs_are_one_side_and_it_is_said_if_they_differ(record: Record) -> None:
    for name, ttft_ms in (("a1", 100.0), ("a2", 110.0), ("b", 105.0)):
        folder = record(name, turns(ttft_ms))
    parent = Path(folder).parent
    by_comma, by_pattern = held(f"{parent}/a1,{parent}/a2", folder), compare(["a*", "b"], str(parent))

    assert by_comma == by_pattern
    assert by_comma.sides == (("A", "a1, a2"), ("B", "b"))
    assert by_comma.requests == ((100, 100), (50, 50))
    assert effect(by_comma, "ttft_paired_ratio").effect == pytest.approx(105 / (100 * 110) ** 0.5)
    (problem,) = by_comma.problems
    assert problem.startswith("A: a2 differs from a1, which it repeats (ttft_paired_ratio 1.100, ")


def test_the_targets_of_a_run_are_sides(record: Record) -> None:
    two = [target(name=name, identity=IDENTITY | {"engine": name}) for name in ("vllm", "sglang")]
    rows = [row | {"target": name} for name, ms in (("vllm", 100.0), ("sglang", 90.0)) for row in turns(ms)]
    run, other = record("a", rows, targets=two), record("b")
    found = held(run)

    assert found.sides == (("A", "a@vllm"), ("B", "a@sglang"))
    assert effect(found, "ttft_paired_ratio").effect == pytest.approx(0.9)
    assert effect(held(f"{run}@sglang", other), "ttft_paired_ratio").effect == pytest.approx(1 / 0.9)
    assert refusal(f"{run},{other}", other).endswith(f"name one of them: {run}@vllm")
    assert refusal(f"{run}@mlx", other) == "a has no target 'mlx'; it has vllm, sglang."


def test_sub_agents_are_drawn_with_the_session_that_they_belong_to(record: Record) -> None:
    """24 sessions of one user each have a sub-agent: 24 sessions, not 48."""
    rows = turns(sessions=24)
    rows += [turn(1_000 + session, 0, parent_request=f"{session}-0") for session in range(24)]

    assert held(record("a", rows), record("b", rows)).sessions == 24


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{a}"], "There is one side to compare: name two runs or more"),
        (["{a}", "{a}"], "a is named twice: compare it with another run."),
        (["{a},", "{a}"], "A run's name is missing before or after a comma."),
        (["{a}", "nothing-*"], "No run fits 'nothing-*', neither here nor in results."),
        (["{a}", "nowhere"], "There is no run 'nowhere'"),
    ],
)
def test_sides_that_cannot_be_understood_are_the_users_mistake(record: Record, words: list[str], sentence: str) -> None:
    folder = record("a")
    assert sentence in refusal(*(word.format(a=folder) for word in words))


def test_a_difference_that_nobody_knows_cannot_be_allowed(record: Record) -> None:
    assert refusal(record("a"), record("b"), allowed=["version"]).startswith(
        "--allow takes no 'version'; choose one of model, "
    )


def test_a_damaged_run_is_named_and_an_unfinished_one_is_compared_with_a_word(record: Record) -> None:
    first, unfinished = record("a"), record("b", state="incomplete", problems=["worker 1 was lost"])
    problems = held(first, unfinished).problems
    assert problems == ("B, b: The run is incomplete: some of its rows may be missing.", "B, b: worker 1 was lost")

    (part,) = (Path(first) / "requests").iterdir()
    part.unlink()
    with pytest.raises(RecordError, match=r"part-0000-00000\.parquet is missing"):
        held(first, unfinished)


def test_a_time_counts_where_it_counts_on_every_side_and_each_sides_doubts_are_told(record: Record) -> None:
    """A second of the worker's stall in B, while one request of it was under way."""
    stalled = second(6, span_ms=400.0, loop_lag_max_ms=390.0)
    found = held(record("a"), record("b", turns(120.0), health=[stalled]))

    paired, p50 = effect(found, "ttft_paired_ratio"), effect(found, "ttft_p50_ratio")
    assert (paired.requests, p50.requests) == ((49, 49), (49, 49))
    assert effect(found, "hit_rate_diff").requests == (50, 50)
    whose, everywhere = found.problems
    assert whose.startswith("B, b: the harness was the bottleneck in 1 of 1 worker seconds (1 stall); 1 of 50 measured")
    assert everywhere.startswith("Times are of the requests that count on every side: 1 of 50 are left out of them")


def test_the_command_prints_tables_that_fit_and_judges_gates(record: Record) -> None:
    first, second = record("a"), record("b", turns(120.0), identity={"version": "0.28"})
    done = command(
        first,
        second,
        "--fail-if",
        "ttft_p50_ratio>1.1",
        "--fail-if",
        "tpot_p50_ratio>1.1, hit_rate_diff<-2%,failures_diff>0.1%",
    )

    assert done.exit_code == 1
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["version", "0.27", "0.28"] in lines
    assert ["TTFT", "p50", "50", "50", "112", "134", "1.200", "1.200", "to", "1.200", "higher", "-"] in lines
    assert ["TTFT", "paired", "50", "50", "-", "-", "1.200", "1.200", "to", "1.200", "higher", "-"] in lines
    assert ["hit", "rate", "50", "50", "30.0", "%", "30.0", "%", "+0.00", "+0.00", "to", "+0.00", "no", "-"] in lines
    words = " ".join(done.stdout.split())
    assert "B against A: TTFT paired higher, 1.200 times (1.200 to 1.200); TTFT p50 higher" in words
    assert "Gate, B against A: ttft_p50_ratio>1.1: FAILED. ttft_p50_ratio is 1.200 (1.200 to 1.200)." in words
    assert "Gate, B against A: hit_rate_diff<-2%: PASSED." in words
    assert "Gate, B against A: failures_diff>0.1%: UNDECIDED. failures_diff is +0.00 pp (-7.13 pp to +7.13" in words
    assert "50 requests of each side are too few for an interval" in words  # the note of p99
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert command(first, second, "--fail-if", "ttft_p50_ratio>1.3").exit_code == 0
    assert command(first, second, "--fail-if", "ttft_p99_ratio>1.3").exit_code == 1  # not known: it guards nothing


def test_the_table_fits_into_80_columns_and_loses_no_digit(record: Record) -> None:
    ours = [record(name, turns(1_234.5, sessions=60)) for name in ("a1", "a2")]
    theirs = record("b", turns(1_334.5, sessions=60))
    lines = CliRunner().invoke(app, ["compare", ",".join(ours), theirs], env={"COLUMNS": "80"}).stdout.splitlines()

    assert max(map(len, lines)) <= 80
    (row,) = [line.split() for line in lines if line.startswith("TTFT misses p50")]
    assert row[3:] == ["120", "60", "1,599", "1,728", "1.081", "1.081", "to", "1.081", "higher", "-"]


def test_two_alike_are_said_to_be_alike_with_what_could_have_been_seen(record: Record) -> None:
    luck = np.random.default_rng(1).lognormal(5, 0.1, (2, 60))
    first, second = ([turn(session, 0, ms) for session, ms in enumerate(of_run)] for of_run in luck.tolist())
    words = " ".join(command(record("a", first), record("b", second)).stdout.split())

    assert "Nothing that is known of the servers, the load and the scenario differs." in words
    assert "B against A: no difference found. One of " in words
    assert "in TTFT paired would have been found by 4 of 5 such comparisons." in words


def test_json_and_markdown_have_all_of_it(record: Record, tmp_path: Path) -> None:
    plain = [row | {"t_due": 7 * row["t_due"] % 120_000_000_000} for row in turns(sessions=60)]
    failed = [row | {"status": "timeout", "ttft_ms": None} if row["session"] % 3 == 1 else row for row in plain]
    names = record("a", plain), record("b", failed, identity={"version": "0_28|x"})
    md = tmp_path / "out.md"
    done = command(*names, "--json", "-", "--markdown", str(md), "--fail-if", "ttft_p90_ratio>1.1")

    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["sides"] == [["A", "a"], ["B", "b"]]
    assert set(told) == {
        "sides", "differences", "workload", "is_paired", "requests", "sessions", "against", "problems", "gates",
    }  # fmt: skip
    by_name = {one["name"]: one for one in told["against"][0]["effects"]}
    assert set(by_name["ttft_p50_ratio"]) == {
        "name", "kind", "requests", "reference", "other", "effect", "low", "high", "verdict", "detectable", "reason",
        "widened",
    }  # fmt: skip
    assert (by_name["ttft_p90_ratio+failed"]["effect"], by_name["ttft_p90_ratio+failed"]["low"]) == ("inf", "inf")
    assert by_name["ttft_p99_ratio"]["low"] is None
    assert told["gates"][0]["state"] == "failed"
    text = md.read_text()
    assert "**B against A: failed higher, +33.33 pp" in text
    assert "- ❌ B against A: ttft\\_p90\\_ratio\\>1.1: FAILED." in text
    assert r"| version | 0.27 | 0\_28\|x |" in text
    assert "<details><summary>All figures of B against A</summary>" in text


def test_one_thing_at_most_goes_to_stdout_and_a_file_must_be_writable(record: Record, tmp_path: Path) -> None:
    names = record("a"), record("b")
    for words, sentence in (
        (["--json", "-", "--markdown", "-"], "Only one of --markdown, --json and --junit can go to - (stdout)"),
        (["--json", str(tmp_path / "no" / "x.json")], "x.json cannot be written: No such file or directory"),
    ):
        done = command(*names, *words)
        assert isinstance(done.exception, InputError)
        assert sentence in str(done.exception)
