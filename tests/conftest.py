"""Fixtures for every test: the tiny model and real servers. And two rules: about skips, and tests side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from harness.embedded.server import LlamaCppOptions, RunningServer, running_server

# What an example takes depends on what else the machine does.
settings.register_profile("kvswarm", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kvswarm")
# The report with plots takes a process some seconds; tests that are about it ask for it.
os.environ.setdefault("KVSWARM_NO_REPORT", "1")
NO_SKIPS = os.environ.get("KVSWARM_NO_SKIPS") == "1"

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Here and not in tests/contract, as pytest knows options of this file from any folder."""
    parser.addoption(
        "--engine",
        default="llama-cpp",
        help="whose server tests/contract runs: llama-cpp (default), mlx-lm, vllm, sglang, with sim- before it the "
        "simulated one, several (a,b) or all; real ones but the first are installed below .cache/engines when they are "
        "first asked for",
    )


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    from harness.embedded.tiny_model import tiny_model

    return tiny_model()


@pytest.fixture(scope="session")
def llama_cpp(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A real llama.cpp server that many tests share: 1 thread, 4 slots of 4,096 tokens, caching and slot saving on."""
    folder = tmp_path_factory.mktemp("llama-cpp")
    options = LlamaCppOptions(model=tiny_model, slot_save_path=folder / "slots", verbose=True)
    with running_server(options, log=folder / "log") as server:
        yield server


@pytest.fixture
def llama_cpp_server(tiny_model: Path) -> Iterator[Callable[..., RunningServer]]:
    """Starts a server of the test's own with the given `LlamaCppOptions`; it is stopped after the test."""
    with ExitStack() as servers:

        def start(**options: Any) -> RunningServer:
            chosen = LlamaCppOptions(**{"model": tiny_model, "verbose": True, **options})
            return servers.enter_context(running_server(chosen))

        yield start


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # one of several processes
        from tests.groups import longest_first

        longest_first(items)


@pytest.hookimpl(optionalhook=True)  # xdist's, which need not be there to run tests one by one
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.groups import GroupScheduling

    return GroupScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    allowed = hasattr(report, "wasxfail") or item.get_closest_marker("optional") is not None
    return report if allowed else without_skip(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return without_skip((yield))


def without_skip(report: Report) -> Report:
    """Turn a skip into a failure where everything that the tests need is said to be there."""
    if NO_SKIPS and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, but KVSWARM_NO_SKIPS=1 asks for every test: {report.longrepr}"
    return report
