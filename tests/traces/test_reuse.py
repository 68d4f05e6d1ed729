"""The figures that a trace is told in, by hand."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from harness.errors import InputError
from harness.traces.reading import read_trace
from harness.traces.request import Trace
from harness.traces.reuse import Reuse, Window, as_json, capacities, ladder, reuse_of
from harness.traces.reuse_plot import plot, write_plot
from harness.traces.reuse_tables import render
from tests.traces.written import MOONCAKE, lines


def rendered(reuse: Reuse) -> str:
    file = StringIO()
    render(reuse, Console(width=80, file=file))
    return file.getvalue()


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Three requests: blocks 0 1 and a rest; 0 1 to the token; 0 and a rest."""
    return read_trace(lines(tmp_path / "t.jsonl", MOONCAKE))


def test_tokens_are_served_or_new_or_in_no_block(trace: Trace) -> None:
    found, distances = reuse_of(trace)
    assert (found.requests, found.span_s, found.output_tokens) == (3, 1.5, 21)
    assert (found.prompt_tokens, found.median_prompt_tokens, found.longest_prompt_tokens) == (2724, 1024, 1100)
    # Requests 1 and 2 hit block 0 each: 1024 tokens end with their second block, whose last token is computed.
    assert found.infinite.hit_rate == 1024 / 2724
    assert found.infinite.capacity_tokens == 1024
    assert found.uncached_tokens == 2724 - 1024 - 1024
    # Block 0 is touched last each time, so a cache of one block serves it.
    assert found.capacity_serving["1.0"] == 512
    assert distances.hit_tokens(511) == 0


def test_windows_have_what_is_in_use_and_what_comes_again(trace: Trace) -> None:
    found, _ = reuse_of(trace)
    assert list(found.windows) == [
        Window(0.0, 1, 1100, 1024, 1024),
        Window(0.5, 0, 0, 0, 1024),
        Window(1.0, 2, 1624, 1024, 0),
    ]
    assert found.peak_reusable_tokens == 1024


def test_without_times_windows_have_equally_many_requests(tmp_path: Path) -> None:
    rows = [{**MOONCAKE[0], "timestamp": None} for _ in range(30)]
    found, _ = reuse_of(read_trace(lines(tmp_path / "t.jsonl", rows)))
    assert found.span_s is None
    assert len(found.windows) == 12
    assert {window.requests for window in found.windows} == {2, 3}
    assert sum(window.requests for window in found.windows) == 30
    assert found.windows[0].start_s is None


def test_few_requests_make_few_windows(tmp_path: Path) -> None:
    found, _ = reuse_of(read_trace(lines(tmp_path / "t.jsonl", MOONCAKE[:1])))
    assert [window.requests for window in found.windows] == [1]


def test_a_coarser_block_is_a_multiple_of_the_trace_s_own(trace: Trace) -> None:
    found, _ = reuse_of(trace, 1024)
    # Request 1 is the first block of request 0, but its last token is computed.
    assert found.infinite.hit_rate == 0
    assert found.infinite.capacity_tokens == 1024
    assert found.infinite.of_possible is None
    assert found.capacities == []
    for block in (16, 500, 768):
        with pytest.raises(InputError, match="give a multiple of 512"):
            reuse_of(trace, block)


def test_capacities_are_those_asked_for(trace: Trace) -> None:
    found, _ = reuse_of(trace, capacities_tokens=capacities("511, 512"))
    assert [(at.capacity_tokens, at.of_possible) for at in found.capacities] == [(511, 0), (512, 1)]


@pytest.mark.parametrize("text", ["1k", "-5", "0", "1.5", "1 2", "²"])
def test_a_capacity_is_a_number_of_tokens(text: str) -> None:
    with pytest.raises(InputError, match="--capacity-tokens"):
        capacities(text)


def test_the_ladder_ends_where_all_is_served() -> None:
    assert ladder(16, 1_500) == [20, 50, 100, 200, 500, 1_000, 2_000]
    assert ladder(512, 1_000) == [1_000]
    assert ladder(512, 512) == [1_000]
    assert ladder(512, None) == []


def test_json_has_all_of_it(trace: Trace) -> None:
    found, _ = reuse_of(trace)
    value = json.loads(as_json(found))
    assert value["infinite"]["hit_rate"] == 1024 / 2724
    assert value["capacity_serving"]["0.9"] == 512
    assert len(value["windows"]) == 3


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan")])
def test_a_sample_is_a_share(trace: Trace, share: float) -> None:
    with pytest.raises(InputError, match="--sample"):
        reuse_of(trace, sampled_share=share)


def test_an_empty_sample_is_refused(trace: Trace) -> None:
    with pytest.raises(InputError, match="give a larger share"):
        reuse_of(trace, sampled_share=1e-12)


def test_tables_fit_into_80_columns_and_hold_no_markup(tmp_path: Path) -> None:
    rows = [dict(MOONCAKE[0]), *({**MOONCAKE[1], "timestamp": 10**9 * number} for number in range(1, 40))]
    path = lines(tmp_path / "[bold]t.jsonl", rows)
    path.write_text(path.read_text() + "[red]\n")
    text = rendered(reuse_of(read_trace(path, skip_bad=True))[0])
    assert "[bold]t.jsonl" in text
    assert "Problem: 1 entry was left out; the first: line 41: not valid JSON" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_trace_without_anything_to_serve_says_so(tmp_path: Path) -> None:
    found, distances = reuse_of(read_trace(lines(tmp_path / "t.jsonl", MOONCAKE[:1])))
    assert "Nothing can be served" in rendered(found)
    with pytest.raises(InputError, match="nothing to plot"):
        write_plot(tmp_path / "p.svg", found, distances)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_picture_is_svg_within_its_frame(tmp_path: Path, share: float) -> None:
    rows = [
        {"timestamp": 0, "input_length": 512 * 20 + 1, "output_length": 1, "hash_ids": [*range(20), 100 + number]}
        for number in range(9)
    ]
    path = lines(tmp_path / "a&b<.jsonl", rows)
    picture = plot(*reuse_of(read_trace(path), sampled_share=share))
    root = ElementTree.fromstring(picture)
    (curve,) = root.iter("{http://www.w3.org/2000/svg}polyline")
    points = [tuple(map(float, point.split(","))) for point in curve.attrib["points"].split()]
    assert all(0 <= x <= 760 and 0 <= y <= 420 for x, y in points)
    heights = [y for _, y in points]
    assert heights == sorted(heights, reverse=True)
    assert len(set(heights)) > 3
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polygon"))) == (share < 1)


def test_where_a_picture_cannot_be_written(tmp_path: Path, trace: Trace) -> None:
    found, distances = reuse_of(trace)
    for path, words in ((tmp_path / "p.png", "ends with .svg"), (tmp_path / "none" / "p.svg", "cannot be written")):
        with pytest.raises(InputError, match=words):
            write_plot(path, found, distances)
