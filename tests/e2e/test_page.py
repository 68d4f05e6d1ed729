"""Locust's page in a real browser: form, live figures, editing, stopping, report, and wrong input."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests as http
from selenium.webdriver.common.by import By

from harness.analysis import Run, load
from harness.analysis.expected import expect
from harness.analysis.expected_engines import engine_cache
from harness.analysis.request_log import read_log
from harness.command import kvswarm
from harness.embedded.process import free_port
from harness.embedded.server import RunningServer, running_server
from harness.sim.options import SimOptions
from tests.e2e.browser import Page, open_browser
from tests.e2e.conftest import CHAT, Locust, SlowServer
from tests.e2e.test_exact import check_exact

WARM, COLD = "multi-round warm", "multi-round cold"
LEGEND = """return [...document.querySelectorAll('.kvswarm .legend span')].map(
    one => [one.childNodes[1].textContent, one.querySelector('b').textContent])"""
THEME = """const shown = () => document.querySelector('.kvswarm').dataset.theme, before = shown();
    const toggle = [...document.querySelectorAll('header button')].at(-1);
    toggle.click();
    return new Promise(done => setTimeout(() => {
        const after = shown();
        toggle.click();
        done([before, after]);
    }, 500));"""
UNKNOWN = "\u2013"
LOADED = "return performance.getEntriesByType('resource').map(entry => entry.name)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("Chromium and its driver are not installed")
    driver = open_browser(chromium, chromedriver)
    yield driver
    driver.quit()


@pytest.fixture
def open_page(browser: Any, start_locust: Callable[..., Locust]) -> Callable[..., Page]:
    """Start Locust with the given options, and open its page."""

    def start(*words: object, workers: int = 0) -> Page:
        port = free_port()
        start_locust("swarm.py", "--web-host", "127.0.0.1", "--web-port", port, *words, workers=workers)
        page = Page(browser, port)
        page.open()
        return page

    return start


def requests(figures: dict[str, list[str]]) -> dict[str, int]:
    return {name: int(figures[name][0]) if name in figures else 0 for name in (COLD, WARM)}


def recorded(run: Run) -> dict[str, int]:
    return {f"multi-round {warmth}": n for warmth, n in run.measured.groupby("warmth").size().items()}


def legend(page: Page) -> dict[str, str]:
    """Name of a line in the charts -> its value; of several of one name, the last."""
    return {name.strip(): value for name, value in page.browser.execute_script(LEGEND)}


def state(page: Page) -> str:
    """Of the run that the tab shows."""
    return "".join(page.texts(".kvswarm .run")).rpartition(": ")[2]


def check_expected(run: Run, live: dict[str, Any]) -> None:
    """What the page had said while the run went on is what the report's models say of the requests that had ended."""
    (target,) = run.by_target()
    log = read_log(target)
    began_ns = min(phase.start_ns for phase in run.manifest.phases if phase.phase == "ramp")
    found = expect(log.requests, engine_cache(target.target)).found
    assert found is not None
    ended = [request.end_ns < began_ns + live["until_s"] * 1e9 for request in log.requests]
    rows = log.rows.assign(tokens=[request.prompt_tokens for request in log.requests], found=found)[ended]
    rows = rows[rows.phase.isin(["ramp", "measure"]) & rows.cached_tokens.notna()]
    assert len(rows) > 8
    assert live["why"] == ""
    assert sum(window["prompt_tokens"] for window in live["windows"]) == rows.tokens.sum()
    # The live one leaves out that two texts may begin with the same words.
    assert sum(window["expected"] for window in live["windows"]) == pytest.approx(rows.found.sum(), rel=0.01)


def test_a_run_from_form_to_record(open_page: Callable[..., Page], llama_cpp: RunningServer, tmp_path: Path) -> None:
    page = open_page()
    page.write("target", llama_cpp.url)
    assert {"agent-loop", "long-document", "multi-round"} <= set(page.choose("scenario", "demo-multi-round"))
    page.write("userCount", 2)
    page.write("spawnRate", 2)
    page.press("start")
    page.press("prefix cache")
    page.until(lambda: requests(page.figures())[WARM] >= 3)
    assert state(page) == "running"

    page.press("edit")
    page.write("userCount", 3)
    page.press("update")
    page.until(lambda: page.header()[page.header().index("Users") + 1] == "3")
    before = requests(page.figures())[WARM]
    page.until(lambda: requests(page.figures())[WARM] > before)

    page.press("stop")
    page.until(lambda: state(page) == "complete")
    figures = page.figures()
    (folder,) = (tmp_path / "results").iterdir()
    assert f"In a terminal: {kvswarm()} report {folder}" in page.texts(".kvswarm .note")

    run = load(folder)
    assert (run.manifest.scenario_name, run.manifest.stopped_by) == ("demo-multi-round", "stop")
    rows = check_exact(run)
    assert requests(figures) == recorded(run)
    for name in (COLD, WARM):
        of_group = rows[rows.warmth == name.split()[1]]
        _, failed, ttft, _, _, hit_rate, reported_by = figures[name]
        assert failed == "0"
        near = [of_group.ttft_ms.quantile(0.5, rank) for rank in ("lower", "higher")]
        assert near[0] * 0.98 < float(ttft) < near[1] * 1.02
        # A cold request may begin as another by accident: "<0.1 %".
        assert float(hit_rate.split()[0].removeprefix("<")) == pytest.approx(
            100 * of_group.cached_tokens.sum() / of_group.prompt_tokens.sum(), abs=0.1
        )
        assert reported_by == f"{len(of_group)} of {len(of_group)}"


def test_the_live_figures_move_and_lead_to_the_report(
    open_page: Callable[..., Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KVSWARM_NO_REPORT")
    with running_server(SimOptions(manner="vllm", kv_tokens=40_000, time_scale=20.0)) as server:
        page = open_page("--target", server.url, "--drain-timeout", 5, workers=2)
        page.choose("scenario", "multi-round")
        page.write("changes", "think_time_s=0.2")
        page.write("userCount", 8)
        page.write("spawnRate", 2)
        page.press("start")
        page.press("prefix cache")
        page.until(lambda: "ramp: not measured yet" in page.texts(".kvswarm .badge"))
        page.until(lambda: "measuring" in page.texts(".kvswarm .badge"))
        page.until(lambda: legend(page)["server's counters"] != UNKNOWN and legend(page)["p99"] != UNKNOWN)
        before = page.texts(".kvswarm .tiles b")
        page.until(lambda: page.texts(".kvswarm .tiles b") != before)
        page.until(lambda: legend(page).get("expected by the cache's rules", UNKNOWN) != UNKNOWN)
        expected = http.get(f"{page.url}kvswarm/live.json", timeout=10).json()["lines"][0]["expected"]
        assert legend(page)["live sessions"] == "8"
        assert legend(page)["KV capacity"] == "40 k"
        assert len(page.browser.find_elements(By.CSS_SELECTOR, ".kvswarm polyline")) > 10

        page.resize(390, 844)
        page.until(lambda: page.browser.execute_script("return document.documentElement.scrollWidth") == 390)
        page.resize(1280, 1000)
        assert page.browser.execute_script(THEME) == ["light", "dark"]

        page.press("stop")
        page.until(lambda: state(page) == "complete")
    (link,) = page.browser.find_elements(By.LINK_TEXT, "Open the report")
    page.browser.get(link.get_attribute("href"))
    (frame,) = page.until(lambda: page.browser.find_elements(By.TAG_NAME, "iframe"))
    page.browser.switch_to.frame(frame)
    page.until(lambda: "How far to trust it" in page.text())
    page.until(lambda: page.browser.find_elements(By.CSS_SELECTOR, "body[data-drawn]"))
    (folder,) = (tmp_path / "results").iterdir()
    run = load(folder)
    assert {"ramp", "measure"} <= set(run.requests.phase)
    # By hand, the figure that the report shows: rounded down to a tenth of a percent.
    hits = run.measured.cached_tokens.sum() / run.measured.prompt_tokens.sum()
    assert f"{100 * hits:.1f} %" in page.text()
    check_expected(run, expected)
    page.until((folder / "report.html").exists)
    page.browser.switch_to.default_content()
    part = run.manifest.parts.requests[0]
    (link,) = page.browser.find_elements(By.LINK_TEXT, part.name)
    assert http.get(link.get_attribute("href"), timeout=10).content == (folder / part.name).read_bytes()
    assert all(name.startswith(page.url) for name in page.browser.execute_script(LOADED))


def test_a_second_run_begins_at_zero_and_unknown_stays_unknown(
    open_page: Callable[..., Page],
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    slow = slow_server(0.2)
    words = ["--scenario", scenario(CHAT), "--target", slow.url, "--users", 4, "--spawn-rate", 4]
    page = open_page(*words, workers=2)
    page.write("drainTimeout", 7)
    page.press("start")
    page.press("prefix cache")
    shown = []
    for again in (False, True):
        if again:
            page.press("new")
            page.until(lambda: page.value("drainTimeout") == "7")  # the form holds what was started last
            page.press("start")
        page.until(lambda: state(page) == "running" and requests(page.figures())[COLD] >= 4)
        page.press("stop")
        page.until(lambda: state(page) == "complete")
        shown.append(page.figures())
    runs = [load(folder) for folder in sorted((tmp_path / "results").iterdir())]
    assert [requests(figures) for figures in shown] == [recorded(run) for run in runs]
    assert sum(len(run.measured) for run in runs) == len(slow.asked)
    for figures in shown:
        assert figures[WARM][-2:] == ["-", f"0 of {figures[WARM][0]}"]


def test_wrong_input_is_answered_in_the_form_and_nothing_starts(
    open_page: Callable[..., Page], llama_cpp: RunningServer, tmp_path: Path
) -> None:
    page = open_page()
    nowhere = f"http://127.0.0.1:{free_port()}/v1"
    page.press("start")
    page.until(lambda: "No target: say whom to load" in page.alerts())
    page.write("target", nowhere)
    page.press("start")
    page.until(lambda: nowhere in page.alerts() and "nothing listens" in page.alerts())
    page.write("target", llama_cpp.url)
    page.write("pressure", "high")
    page.press("start")
    page.until(lambda: "pressure is 'high'; it must be a number above 0" in page.alerts())
    page.write("pressure", "")
    page.choose("load", "open")
    page.press("start")
    page.until(lambda: "An open loop needs a rate" in page.alerts())
    page.choose("load", "closed")
    page.write("model", "gpt-17")
    page.press("start")
    page.until(lambda: "gpt-17" in page.alerts() and "tiny" in page.alerts())
    page.write("host", nowhere)
    page.press("start")
    page.until(lambda: f"Host is {nowhere}" in page.alerts())
    page.browser.refresh()
    assert page.until(lambda: page.buttons("start"))  # the form again: no run is on
    assert not list(tmp_path.glob("results/*"))


def test_several_targets_have_their_turns_from_one_press_of_start(
    open_page: Callable[..., Page],
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    first, second = slow_server(0.2), slow_server(0.1)
    words = ["--scenario", scenario(CHAT), "--target", f"{first.url},{second.url}"]
    page = open_page(*words, "--users", 2, "--spawn-rate", 2, "--run-time", "4s", workers=2)
    page.press("start")
    page.press("prefix cache")
    page.until(lambda: state(page) == "complete", timeout=120)
    page.until(lambda: page.buttons("new"))
    (folder,) = (tmp_path / "results").iterdir()
    run = load(folder)
    assert run.manifest.state == "complete"
    for server, of_target in zip((first, second), run.by_target(), strict=True):
        assert sorted(of_target.measured.request_id) == sorted(server.asked)
        name = f"{of_target.target.name} {COLD}"
        assert page.figures()[name][0] == str((of_target.measured.warmth == "cold").sum())


def test_stop_ends_a_run_before_the_targets_that_wait_for_their_turn(
    open_page: Callable[..., Page],
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
) -> None:
    first, second = slow_server(0.1), slow_server(0.1)
    words = ["--scenario", scenario(CHAT), "--target", f"{first.url},{second.url}"]
    page = open_page(*words, "--users", 2, "--spawn-rate", 2, "--run-time", "60s")
    page.press("start")
    page.press("prefix cache")
    page.until(lambda: len(first.asked) > 4)
    page.press("stop")
    page.until(lambda: state(page) == "incomplete")
    page.until(lambda: page.buttons("new"))
    assert any(line.startswith("target") and "was not loaded" in line for line in page.texts(".kvswarm .problems li"))
    assert second.asked == []
