"""The lock files fit pyproject.toml, for every Python and system that they are for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK, ENGINE_LOCK = (ROOT / name for name in ("requirements.lock", "requirements-embedded.lock"))
SYSTEMS = [
    {"python_version": minor, "python_full_version": f"{minor}.0", "sys_platform": system, "platform_system": name}
    for minor in ("3.11", "3.12", "3.13")
    for system, name in (("linux", "Linux"), ("darwin", "Darwin"))
]


def pinned(path: Path, system: dict[str, str]) -> dict[str, str]:
    """Package -> version, of the lines that hold for a system."""
    lines = re.findall(r"^[a-z0-9].*?(?= \\$)", path.read_text(), re.MULTILINE)
    return {
        canonicalize_name(requirement.name): str(requirement.specifier).removeprefix("==")
        for requirement in map(Requirement, lines)
        if requirement.marker is None or requirement.marker.evaluate(system)
    }


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: f"{system['sys_platform']}-{system['python_version']}")
def test_what_pyproject_asks_for_is_pinned_to_a_version_that_it_allows(system: dict[str, str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = project["dependencies"] + [text for extra in project["optional-dependencies"].values() for text in extra]
    pins = pinned(LOCK, system) | pinned(ENGINE_LOCK, system)
    for requirement in map(Requirement, asked):
        version = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_the_locks_name_hashes_and_no_place_to_get_packages_from() -> None:
    for path in (LOCK, ENGINE_LOCK):
        text = path.read_text()
        assert re.findall(r"^[a-z0-9].*(?<! \\)$", text, re.MULTILINE) == []  # each package goes on with its hashes
        assert "--hash=sha256:" in text
        assert not re.search(r"://|--(extra-)?index-url|--find-links", text)
