"""A run with several targets: the same sessions for each, one after the other or at the same time, in one record."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis import Run, load
from harness.analysis.summary import summarise
from harness.embedded.server import RunningServer
from tests.e2e.conftest import AGENT, Locust, computed_tokens
from tests.waiting import wait_until


@pytest.fixture
def targets(llama_cpp_server: Callable[..., RunningServer], tmp_path: Path) -> str:
    """Two target files, of one server with prompt caching and one without."""
    paths = []
    for name, caching in (("on", True), ("off", False)):
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"url: {llama_cpp_server(cache_prompt=caching).url}\n")
        paths.append(str(path))
    return ",".join(paths)


def sessions(run: Run, target: str) -> list[tuple[int, int, tuple[int, ...]]]:
    """(session, turn, content ids of the prompt) of what one target was asked, in the order of the plan."""
    rows = run.measured[run.measured.target == target]
    return sorted(zip(rows.session, rows.turn, map(tuple, rows.path), strict=True))


def check_both(run: Run) -> None:
    """What holds however the two targets were loaded."""
    assert run.manifest.state == "complete"
    assert [record.name for record in run.manifest.targets] == ["on", "off"]
    assert run.requests.request_id.is_unique
    assert (run.measured.status == "ok").all()
    assert set(run.measured.target) == set(run.server_metrics.target) == {"on", "off"}
    on, off = sessions(run, "on"), sessions(run, "off")
    both = {key[:2] for key in on} & {key[:2] for key in off}
    assert both
    assert [key for key in on if key[:2] in both] == [key for key in off if key[:2] in both]
    with_cache, without = map(summarise, run.by_target())
    assert with_cache.hit_rate.cached_tokens
    assert without.hit_rate.cached_tokens == 0
    for summary in (with_cache, without):
        assert summary.agreement.cached.difference == summary.agreement.prompt.difference == 0
    verdicts = [record.check.verdict if record.check else None for record in run.manifest.targets]
    assert verdicts == ["works", "caching-off"]


@pytest.mark.parametrize("workers", [0, 2])
def test_one_after_the_other_each_gets_the_same_sessions_and_the_whole_run_time(
    workers: int,
    targets: str,
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    path = scenario(AGENT.replace("replies: live", "replies: scripted"))
    words = ("--headless", "--users", 2, "--spawn-rate", 2, "--run-time", "5s")
    code, output = start_locust("agent_loop.py", "--scenario", path, "--target", targets, *words, workers=workers).wait(
        180
    )
    assert code == 0, output
    run = load("latest", tmp_path / "results")
    check_both(run)
    assert not run.manifest.together
    on, off = (run.measured[run.measured.target == name] for name in ("on", "off"))
    assert on.t_end.max() < off.t_send.min()
    measured = [phase for phase in run.manifest.phases if phase.phase == "measure"]
    assert [phase.targets for phase in measured] == [("on",), ("off",)]
    assert [worker.leg for worker in run.manifest.workers] == sorted([0, 1] * max(workers, 1))


def test_together_the_users_are_dealt_out_to_the_targets(
    targets: str, scenario: Callable[[str], Path], start_locust: Callable[..., Locust], tmp_path: Path
) -> None:
    path = scenario(AGENT.replace("replies: live", "replies: scripted"))
    words = ("--headless", "--users", 4, "--spawn-rate", 4, "--run-time", "6s", "--together")
    code, output = start_locust("agent_loop.py", "--scenario", path, "--target", targets, *words, workers=2).wait(180)
    assert code == 0, output
    run = load("latest", tmp_path / "results")
    check_both(run)
    assert run.manifest.together
    users = run.measured.groupby("target").apply(lambda rows: len(set(zip(rows.worker, rows.user, strict=True))))
    assert users.tolist() == [2, 2]
    on, off = (run.measured[run.measured.target == name] for name in ("on", "off"))
    assert on.t_send.min() < off.t_end.max()
    assert off.t_send.min() < on.t_end.max()


def test_a_run_that_is_stopped_says_which_targets_it_did_not_reach(
    targets: str, scenario: Callable[[str], Path], start_locust: Callable[..., Locust], tmp_path: Path
) -> None:
    words = ("--headless", "--users", 2, "--spawn-rate", 2, "--run-time", "60s")
    locust = start_locust("agent_loop.py", "--scenario", scenario(AGENT), "--target", targets, *words, workers=1)
    wait_until(lambda: any((tmp_path / "results").glob("*/requests/part-master-0-*")))
    url = Path(targets.split(",")[0]).read_text().split()[1]
    before_load = computed_tokens(url)
    wait_until(lambda: computed_tokens(url) > before_load + 500)
    locust.process.send_signal(signal.SIGTERM)
    code, output = locust.wait()
    assert code == 3, output
    run = load("latest", tmp_path / "results")
    assert run.manifest.state == "incomplete"
    assert any("target off was not loaded" in problem for problem in run.manifest.problems)
    assert set(run.measured.target) <= {"on"}
