"""The part of a sweep: its curves over whatever was swept, in numbers and in words."""

from __future__ import annotations

from typing import Any

import pytest

from harness.record.reader import RecordedRun
from harness.report.document import findings
from harness.report.plot import Plot
from harness.report.section import Section
from harness.report.side import read
from harness.report.sweep_section import sweep, sweep_of
from tests.analysis.rows import sample, target
from tests.report.conftest import METRICS, MakeRecord, S, sent


def of(make_record: MakeRecord, cached: int | None, ttft_ms: float, **changes: Any) -> RecordedRun:
    """Four requests of one session each; the first finds nothing, the others `cached` of 1,000 tokens."""
    rows = [sent(session, 0, session / 2, 1_000, cached and (session and cached), ttft_ms) for session in range(4)]
    return make_record(rows, **changes)


def part(*runs: RecordedRun) -> Section:
    section = sweep(findings(read(runs)))
    assert section is not None
    return section


def points(plot: Plot, which: str) -> list[tuple[Any, float]]:
    """(value of what was swept, height) of one line."""
    assert plot.spec is not None
    (line,) = (each for each in plot.spec["layer"] if "color" in each["encoding"])
    rows = plot.spec["datasets"][line["data"]["name"]]
    return [(row["at"], row["value"]) for row in rows if row["which"] == which]


def axis(plot: Plot) -> Any:
    assert plot.spec is not None
    return plot.spec["layer"][-1]["encoding"]["x"]


@pytest.mark.parametrize(
    ("key", "options", "title"),
    [
        (
            "rate",
            [{"load": "open", "arrivals": "poisson", "rate": rate} for rate in ("8", "2", "4")],
            "rate: sessions that arrive each second",
        ),
        ("users", [{"users": users} for users in (8, 2, 4)], "users: live sessions at a time"),
        ("steps", [{"changes": f"steps={steps}"} for steps in (8, 2, 4)], "steps"),
    ],
)
def test_hit_rate_ttft_and_answers_stand_over_whatever_was_swept(
    make_record: MakeRecord, key: str, options: list[dict[str, Any]], title: str
) -> None:
    cached = (200, 800, 400)
    runs = [of(make_record, n, 10.0 * n, options=told) for n, told in zip(cached, options, strict=True)]
    section = part(*runs)
    rates, times, answered = section.plots
    assert section.title == f"The sweep over {key}"
    # Three of four requests hit; by rising value, though the runs were named in another order.
    assert points(rates, "measured") == [(2, 0.6), (4, 0.3), (8, 0.15)]
    assert points(times, "p50") == [(2, 8_000), (4, 4_000), (8, 2_000)]
    # Four answers in the ten seconds of the measured phase.
    assert points(answered, "answered") == [(2, 0.4), (4, 0.4), (8, 0.4)]
    assert (axis(rates)["title"], axis(rates)["scale"]["type"]) == (title, "log")
    found = sweep_of(findings(read(runs)))
    assert found is not None
    (sentence,) = found.sentences()
    at = {"users": ("2 users", "8 users"), "rate": ("2 sessions/s", "8 sessions/s")}.get(key, ("steps 2", "steps 8"))
    assert sentence == (
        f"The hit rate falls from 60.0 % at {at[0]} to 15.0 % at {at[1]}, most steeply between 2 and 4 (60.0 % to "
        "30.0 %); median TTFT falls from 8,000 to 2,000 ms."
    )


def test_even_values_stand_on_an_even_axis(make_record: MakeRecord) -> None:
    runs = [of(make_record, 200, 10.0, options={"users": users}) for users in (2, 4, 6)]
    assert "type" not in axis(next(part(*runs).plots))["scale"]


def test_a_time_in_seconds_has_one_unit(make_record: MakeRecord) -> None:
    runs = [of(make_record, 800, ttft_ms, options={"users": n}) for n, ttft_ms in ((2, 500.0), (4, 120_000.0))]
    found = sweep_of(findings(read(runs)))
    assert found is not None
    assert found.sentences()[0].endswith("; median TTFT rises from 500 ms to 120 s.")


def test_values_that_are_no_numbers_are_points_in_the_order_of_the_runs(make_record: MakeRecord) -> None:
    runs = [
        of(make_record, cached, 10.0, options={"changes": f"order={order}"})
        for order, cached in (("tile", 800), ("interleave", 200))
    ]
    section = part(*runs)
    rates = next(section.plots)
    assert (axis(rates)["type"], axis(rates)["sort"]) == ("ordinal", ["tile", "interleave"])
    assert points(rates, "measured") == [("tile", 0.6), ("interleave", 0.15)]
    found = sweep_of(findings(read(runs)))
    assert found is not None
    assert found.sentences() == [
        "Hit rate by order (and median TTFT): tile 60.0 % (10.0 ms), interleave 15.0 % (10.0 ms)."
    ]


def test_several_keys_at_once_stand_run_by_run_and_it_is_said(make_record: MakeRecord) -> None:
    runs = [
        of(make_record, cached, 10.0, options={"changes": f"steps={steps}", "users": users})
        for steps, users, cached in ((2, 4, 800), (4, 8, 200))
    ]
    section = part(*runs)
    assert section.title == "Run by run"
    assert "differ in steps and users" in section.lead
    assert "cannot be put down to one of them" in section.lead
    assert points(next(section.plots), "measured") == [("1", 0.6), ("2", 0.15)]
    assert "<td>2</td><td class=right>4</td><td class=right>8</td>" in section.after[0]


def test_of_runs_at_one_value_the_last_is_drawn_and_it_is_said(make_record: MakeRecord) -> None:
    runs = [
        of(make_record, cached, 10.0, options={"users": users}, started_ns=started_ns)
        for users, cached, started_ns in ((2, 800, 1), (4, 200, 3), (4, 400, 2))
    ]
    section = part(*runs)
    assert points(next(section.plots), "measured") == [(2, 0.6), (4, 0.15)]
    assert "the last one is drawn (1 is not)" in section.lead


def test_engines_have_a_column_each_on_axes_that_they_share(make_record: MakeRecord) -> None:
    runs = [
        of(
            make_record, 500, ttft_ms, options={"users": users},
            targets=[target(identity={"engine": engine}, metrics=METRICS)],
        )
        for engine, ttft_ms in (("one", 100.0), ("two", 900.0))
        for users in (2, 4)
    ]  # fmt: skip
    section = part(*runs)
    assert section.headings == ["one", "two"]
    ends = [
        column[1].spec["layer"][-1]["encoding"]["y"]["scale"]["domain"] for column in section.columns if column[1].spec
    ]
    assert ends == [[0, 900], [0, 900]]


def test_where_answers_do_not_tell_the_counters_do(make_record: MakeRecord) -> None:
    samples = [
        sample(name, value, (100 + at_s) * S, moment)
        for at_s, moment, queries, hits in ((-1, "warmup_end", 0, 0), (12, "after", 4_000, 1_000))
        for name, value in (("queries_total", queries), ("hits_total", hits))
    ]
    rows = [sent(session, 0, session, 1_000, None, 10.0) for session in range(4)]
    runs = [make_record(rows, samples, options={"users": users}) for users in (2, 4)]
    rates = next(part(*runs).plots)
    assert points(rates, "measured") == []
    assert points(rates, "by the server's counters") == [(2, 0.25), (4, 0.25)]


def test_runs_that_differ_in_nothing_that_was_set_are_no_sweep(make_record: MakeRecord) -> None:
    same = [of(make_record, 500, 10.0, options={"users": 2}) for _ in range(2)]
    assert sweep(findings(read(same))) is None
    others = [of(make_record, 500, 10.0, options={"users": 2}, scenario_name=name) for name in ("a", "b")]
    assert sweep(findings(read(others))) is None
