"""One suite for every engine: `pytest tests/contract --engine vllm`, or several (a,b), or all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.embedded.engine_options import EngineOptions
from harness.embedded.environments import install
from harness.embedded.server import running_server
from harness.engines.detect import connect
from harness.engines.target import Target
from harness.errors import KvswarmError
from tests.contract.subject import ENGINES, SIMULATED, Subject, options


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_name" in metafunc.fixturenames:
        # Of the session: all tests of one engine run before those of the next, and only one server is up at a time.
        metafunc.parametrize("engine_name", chosen(metafunc.config.getoption("--engine")), scope="session")


def chosen(option: str) -> list[str]:
    names = list(ENGINES) if option == "all" else [name.strip() for name in option.split(",")]
    if unknown := set(names) - set(ENGINES):
        raise pytest.UsageError(f"--engine: no {', '.join(sorted(unknown))} here; known are {', '.join(ENGINES)}, all")
    return names


@pytest.fixture(scope="session")
def engine_name() -> str:
    raise NotImplementedError("pytest_generate_tests gives it")


@pytest.fixture(scope="session")
def subject(engine_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    """The server that the tests of an engine share, with prefix caching, and the adapter that fits it."""
    with running_subject(engine_name, tmp_path_factory.mktemp(engine_name)) as subject:
        yield subject


@pytest.fixture(scope="module")
def uncached(engine_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    """Another server, without prefix caching; a test may stop it."""
    with running_subject(engine_name, tmp_path_factory.mktemp(f"{engine_name}-uncached"), caching=False) as subject:
        yield subject


@contextmanager
def running_subject(engine: str, folder: Path, caching: bool = True) -> Iterator[Subject]:
    started_with = options(engine, folder / "slots", caching)
    if isinstance(started_with, EngineOptions):
        try:
            install(engine)
        except KvswarmError as error:
            pytest.skip(str(error))
    with running_server(started_with, log=folder / "log") as server:
        target = Target(url=server.url)
        yield Subject(engine.removeprefix(SIMULATED), started_with, server, target, connect(target))
