"""The page itself: what it says, that all its links lead somewhere, and that it needs nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from harness.record.reader import RecordedRun, open_run
from harness.report.command_line import report
from harness.report.document import document, plots_of
from harness.report.figures import write_figures
from harness.report.glossary import ENTRIES
from harness.report.palette import DARK, LIGHT
from harness.report.plot import missing
from harness.report.side import MOST_SIDES, read
from tests.analysis.rows import Row, request, second, target
from tests.e2e.browser import open_browser
from tests.report.conftest import METRICS, MakeRecord, scrapes, sent

ROOT = Path(__file__).parents[2]
PLOTS = (
    "waterfall", "hit-rate", "working-set", "prefill", "ttft", "ttft-tail", "tpot", "tpot-tail", "turn-ttft",
    "turn-hits", "reuse-rate", "reuse-tokens", "reuse-curve", "time-ttft", "time-flight", "time-sent", "time-queue",
    "time-kv",
    "time-tokens", "health-lag", "health-cpu",
)  # fmt: skip
"""All that stand on the page of one target that tells everything."""
LIKE_THE_LIVE_PAGE = {"hit": "c1", "miss": "c2", "expected": "c3", "other": "c4"} | {
    name: name for name in ("text", "soft", "edge", "card", "bad")
}


class Parsed(HTMLParser):
    """What a browser would make of a page, as far as tests ask."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.links: set[str] = set()
        self.loaded: list[str] = []
        self.plots: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.open.append(tag)
        if "id" in given:
            self.ids[given["id"]] += 1
        if tag == "a":
            self.links.add(given["href"])
        elif "src" in given or "href" in given:
            self.loaded.append(given.get("src", given.get("href", "")))
        if "data-plot" in given:
            self.plots.append(given["data-plot"])

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text += data


def requests() -> Iterator[Row]:
    """Twelve sessions of three turns: the first computes all, the second most of it, the third a tenth."""
    for session in range(12):
        for turn, uncached in enumerate((1_000, 700, 120)):
            at_s, prompt = 0.5 * session + 4 * turn, 1_000 + 200 * turn
            ttft_ms = 20 + 0.1 * uncached + session / 5
            path = {"path": list(range(turn + 1)), "path_tokens": [1_000, 200, 200][: turn + 1]}
            yield sent(session, turn, at_s, prompt, prompt - uncached, ttft_ms, **path)


@pytest.fixture
def told(make_record: MakeRecord) -> RecordedRun:
    """A run that tells everything."""
    samples = [
        *scrapes("queries_total", {at_s: 3_600.0 * at_s for at_s in range(16)}),
        *scrapes("hits_total", {at_s: 1_700.0 * at_s for at_s in range(16)}),
        *scrapes("made_total", {at_s: 100.0 * at_s for at_s in range(16)}),
        *scrapes("running", {at_s: float(at_s % 4) for at_s in range(16)}, type="gauge"),
        *scrapes("kv", {at_s: at_s / 20 for at_s in range(16)}, type="gauge"),
    ]
    identity = {"engine": "vllm", "model": "m", "granularity_tokens": 16, "capacity_tokens": 8_000}
    health = [second(100 + number) for number in range(14)]
    return make_record(requests(), samples, health, targets=[target(identity=identity, metrics=METRICS)])


def page_of(*runs: RecordedRun) -> str:
    return document(read(runs))


def test_one_target_that_tells_everything(told: RecordedRun) -> None:
    page = page_of(told)
    parsed = Parsed(page)
    assert set(parsed.plots) == set(PLOTS)
    specs = json.loads(page.split('<script type="application/json" id="plots">')[1].split("</script>")[0])
    assert set(specs["plots"]) == set(PLOTS)
    assert "The cache works less than it should: 49.4 % of 43,200 prompt tokens came from it" in parsed.text
    assert "median TTFT 106 ms (n = 24) against 33.1 ms (n = 12)" in parsed.text
    assert "100 ms" in parsed.text  # of a thousand uncached tokens
    assert not Parsed(page).open or set(parsed.open) <= {"meta", "link", "br"}


def test_every_link_leads_somewhere_and_nothing_is_loaded(told: RecordedRun) -> None:
    page = page_of(told)
    parsed = Parsed(page)
    assert set(parsed.ids.values()) == {1}
    assert all(link.startswith("#") for link in parsed.links)
    assert {link[1:] for link in parsed.links} <= parsed.ids.keys()
    assert {f"def-{entry.key}" for entry in ENTRIES} <= parsed.ids.keys()
    assert parsed.loaded == ["data:,"]
    assert not re.search(r"url\(|@import", page.split("<style>")[1].split("</style>")[0])
    assert len(page) < 1_500_000  # most of it is what draws the plots


def test_every_heading_of_a_table_leads_to_its_definition(told: RecordedRun) -> None:
    body = page_of(told).split('id="glossary"')[0]
    heads = re.findall(r"<th(?: [^>]*)?>(.*?)</th>", body)
    assert len(heads) > 40
    assert {head for head in heads if head and "#def-" not in head} <= {"ms"}  # the name of a time stands below it


def test_a_run_that_tells_nothing_says_what_is_missing(make_record: MakeRecord) -> None:
    parsed = Parsed(page_of(make_record([request(status="refused", t_send=None)], targets=[target(metrics=[])])))
    assert parsed.plots == []
    for words in (
        "Whether the cache works is not known",
        "No waterfall: no measured request was sent whose prompt is known.",
        "No TTFT against uncached tokens: no successful request reports what it hit.",
        "No prefill cost: 0 requests report what they hit; it takes 20.",
        "No tail of TPOT: no answer has two or more output tokens with a known count.",
        "Nothing by turn: no measured request belongs to a session.",
        "No reuse distances: no measured request tells what it hit.",
        "It was not made.",
    ):
        assert words in parsed.text


def test_a_run_without_metrics_has_sentences_for_their_plots(make_record: MakeRecord) -> None:
    parsed = Parsed(page_of(make_record(requests(), targets=[target(metrics=[])])))
    assert set(PLOTS) - set(parsed.plots) == {"time-queue", "time-kv", "time-tokens", "health-cpu"}
    assert "No queue over time: no scrape tells what e had running." in parsed.text
    assert "Harness health was not recorded." in parsed.text


def test_runs_under_several_pressures_show_the_cliff(make_record: MakeRecord) -> None:
    runs = [make_record(requests(), scenario={"pressure": pressure, "capacity_tokens": 9}) for pressure in (2, 0.5)]
    parsed = Parsed(page_of(*runs))
    assert {"cliff-rate-e", "cliff-ttft-e", "waterfall-1", "waterfall-2"} <= set(parsed.plots)
    assert "Report of 2 runs" in parsed.text
    assert "run 2: run-2" in parsed.text
    same = [make_record(requests(), scenario={"pressure": 2}) for _ in range(2)]
    assert "cliff-rate-e" not in Parsed(page_of(*same)).plots


def test_what_a_run_says_is_text_and_never_markup(make_record: MakeRecord) -> None:
    run = make_record(requests(), notes=["<b>[red]a note</script>[/red]"], scenario_name="</script><i>")
    page = page_of(run)
    assert "<li>&lt;b&gt;[red]a note&lt;/script&gt;[/red]</li>" in page
    assert page.count("</script>") == 2


def test_too_many_targets_for_a_page(make_record: MakeRecord) -> None:
    run = make_record([], targets=[target(str(number)) for number in range(MOST_SIDES + 1)])
    with pytest.raises(InputError, match=r"13 targets are too many for one page: name runs with 12 of them at most"):
        read([run])


def test_the_colours_are_those_of_the_live_page() -> None:
    style = (ROOT / "harness/swarm/page/style.css").read_text()
    light, dark = (dict(re.findall(r"--(\w+): (#\w+)", rule)) for rule in style.split("}")[:2])
    for name, there in LIKE_THE_LIVE_PAGE.items():
        for colours, of_page in ((LIGHT, light), (DARK, dark)):
            assert colours[name] in (of_page[there], of_page[there] * 2, of_page[there] + of_page[there][1:])
    assert LIGHT.keys() == DARK.keys()


def test_names_of_lines_and_columns_stand_for_one_entry_each() -> None:
    names = Counter(name for entry in ENTRIES for name in entry.found_as)
    assert set(names.values()) == {1}
    assert len({entry.key for entry in ENTRIES}) == len(ENTRIES)


def test_the_page_lies_in_the_runs_directory_and_does_the_record_no_harm(
    told: RecordedRun, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report([told.folder.url], as_html=True)
    place = Path(told.folder.url) / "report.html"
    assert capsys.readouterr().out == f"The report is {place}.\n"
    assert open_run(told.folder.url).problems == ()
    report([told.folder.url], as_html=True, to=str(tmp_path / "there.html"))
    assert (tmp_path / "there.html").read_text() == place.read_text()
    with pytest.raises(InputError, match="--to says where the page goes: it needs --html"):
        report([told.folder.url], to="x")
    with pytest.raises(InputError, match=r"there.html/report.html cannot be written: .*; give another place"):
        report([told.folder.url], as_html=True, to=str(tmp_path / "there.html" / "report.html"))


def test_plots_become_files_with_colours_of_their_own(told: RecordedRun, tmp_path: Path) -> None:
    plots = [plot for plot in plots_of(read([told])) if plot.name == "ttft"]
    assert write_figures([*plots, missing("none", "None", "Nothing.")], str(tmp_path / "plots")) == [
        "ttft.svg",
        "ttft.png",
    ]
    svg = (tmp_path / "plots" / "ttft.svg").read_text()
    assert "TTFT distribution" in svg
    assert "var(--" not in svg
    assert LIGHT["hit"] in svg
    assert (tmp_path / "plots" / "ttft.png").read_bytes().startswith(b"\x89PNG")


SCROLLED = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
MARKS = (
    "return [...document.querySelectorAll('[data-plot]')].filter(one => one.querySelector('svg path, svg line')).length"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium, chromedriver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if chromium is None or chromedriver is None:
        pytest.skip("Chromium and its driver are not installed")
    driver = open_browser(chromium, chromedriver)
    yield driver
    driver.quit()


WORDS = """
const done = arguments[0], seen = [];
const words = [...document.querySelectorAll("main a.term")].filter((word) => word.checkVisibility());
(async () => {
  for (const word of words) {
    const before = scrollY;
    const gone = new Promise((go) => addEventListener("hashchange", go, { once: true }));
    const same = location.hash === word.hash;
    word.click();
    if (!same) await gone;
    const { top } = document.querySelector(":target").getBoundingClientRect();
    const link = document.querySelector(":target a.back, :target + dd a.back");
    seen.push([word.textContent, word.hash, word.title, top >= 0 && top < innerHeight, link !== null]);
  }
  done(seen);
})();
"""


def test_every_word_with_dots_under_it_is_one_click_from_its_definition(
    browser: Any, told: RecordedRun, tmp_path: Path
) -> None:
    page = page_of(told).replace("scroll-behavior: smooth", "scroll-behavior: auto")
    (tmp_path / "page.html").write_text(page)
    browser.get((tmp_path / "page.html").as_uri())
    clicked = browser.execute_async_script(WORDS)
    assert len(clicked) > 60
    meanings = {f"#def-{entry.key}": entry.meaning for entry in ENTRIES}
    assert any(link.startswith("#note-") for _, link, *_ in clicked)
    for text, link, title, is_in_view, leads_back in clicked:
        assert title.startswith(meanings.get(link, text)), text
        assert is_in_view, text
        assert leads_back, text
    browser.find_element("css selector", "a.back").click()
    browser.execute_async_script("setTimeout(arguments[0], 50)")
    assert not browser.current_url.endswith(clicked[-1][1])


def test_a_browser_draws_every_plot_at_any_width(browser: Any, told: RecordedRun, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page_of(told))
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    )
    browser.get((tmp_path / "page.html").as_uri())
    drawn = browser.execute_async_script(
        "const done = arguments[0], drawn = () => document.body.dataset.drawn;"
        "const look = () => drawn() ? done(drawn()) : setTimeout(look, 50); look();"
    )
    assert int(drawn) == browser.execute_script(MARKS) == len(PLOTS)
    wide, room = browser.execute_script(SCROLLED)
    assert wide <= room <= 390
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    wide, room = browser.execute_script(SCROLLED)
    assert wide <= room
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
