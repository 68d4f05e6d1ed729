"""The report as a page: what the text report says, with tables that a browser can lay out."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pytest

from harness.analysis import Run
from harness.analysis.html_report import as_html
from tests.analysis.test_report import pages, printed, rows

MakeRun = Callable[..., Run]


def words(html: str) -> list[str]:
    """What a person reads in the tables and lines."""
    main = html.split("<main>")[1].split("</main>")[0]
    return unescape(re.sub(r"<[^>]+>", " ", main)).split()


@pytest.mark.parametrize("runs", [1, 2])
def test_it_says_what_the_text_says(make_run: MakeRun, runs: int) -> None:
    made = [make_run(rows(cached=2_400), pages(240_000)) for _ in range(runs)]
    drawn = str.maketrans("", "", "─━╶╴╸╺┃│")
    said = printed(made, width=400).translate(drawn).split()
    assert sorted(words(as_html(made))) == sorted(said)


def test_numbers_stand_to_the_right_and_what_a_server_says_is_no_markup(make_run: MakeRun) -> None:
    run = make_run(rows(cached=2_400), pages(240_000))
    run.manifest.notes.append("<b>[red]a note[/red]</b>")
    html = as_html([run])
    assert "<td class=right>300,000</td>" in html
    assert "Note: &lt;b&gt;[red]a note[/red]&lt;/b&gt;" in html
