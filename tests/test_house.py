"""The rules of the house: who may import whom, and how big a file may grow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "harness").rglob("*.py"))
LOCUSTFILES = sorted((ROOT / "locustfiles").glob("*.py"))

LEAVES = {"command", "errors", "expectation", "yamlfile"}
"""Modules beside the packages that everyone may use."""
MAY_IMPORT = {
    "analysis": {"cache", "record", "slo", "statistics", "workload"},
    "cache": {"workload"},
    "checks": {"client", "collector", "engines", "lint", "record", "workload"},
    "client": {"engines", "workload"},
    "collector": {"engines", "record"},
    "compare": {"analysis", "exchange", "query", "record", "statistics"},
    "embedded": {"workload"},
    "engines": set(),
    "exchange": {"analysis", "record"},
    "kv_size": set(),
    "lint": {"cache", "traces"},
    "query": {"record"},
    "record": set(),
    "report": {"analysis", "cache", "record"},
    "sim": {"cache", "embedded", "workload"},
    "slo": {"statistics"},
    "statistics": set(),
    "swarm": {"checks", "client", "collector", "engines", "record", "workload"},
    "traces": {"cache", "record"},
    "workload": {"engines", "traces"},
}
"""Package -> the other packages that it may use: data flows from workload to swarm, client, record and analysis."""
ONLY_IN = {
    "gevent": {"client", "collector", "swarm"},
    "locust": {"swarm"},
    "pandas": {"analysis"},
}
"""Library -> the packages that may use it."""


def imported(path: Path) -> Iterator[str]:
    """Dotted names of everything that a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def unit(path: Path) -> str:
    """The package of a source file, or its name if it lies beside the packages."""
    return path.relative_to(ROOT / "harness").with_suffix("").parts[0]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_each_package_has_its_place_in_the_flow() -> None:
    assert {path.parent.name for path in (ROOT / "harness").glob("*/__init__.py")} == set(MAY_IMPORT)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_flow_one_way(path: Path) -> None:
    used = {name.split(".")[1] for name in imported(path) if name.startswith("harness.")} - {"__version__"}
    if unit(path) in MAY_IMPORT:
        assert used <= {unit(path)} | MAY_IMPORT[unit(path)] | LEAVES
    elif unit(path) in LEAVES:
        assert used <= LEAVES
    elif unit(path) != "cli":
        assert "swarm" not in used


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_libraries_stay_where_they_belong(path: Path) -> None:
    used = {name.split(".")[0] for name in imported(path)}
    for library in used & set(ONLY_IN):
        assert unit(path) in ONLY_IN[library], f"{library} is imported"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_source_file_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300


@pytest.mark.parametrize("path", LOCUSTFILES, ids=name_of)
def test_locustfiles_are_thin(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 60
    assert {".".join(name.split(".")[:2]) for name in imported(path)} <= {"harness.swarm", "__future__.annotations"}


def test_there_is_something_to_look_at() -> None:
    assert len(SOURCES) > 50
    assert LOCUSTFILES
