"""Environments of their own for engines: made once, made again when their packages change, never left half made."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from harness.embedded import environments
from harness.embedded.engine_options import KINDS
from harness.embedded.environments import install, installed
from harness.errors import KvswarmError


@pytest.fixture
def requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list of no packages for an engine called toy."""
    folder = tmp_path / "requirements"
    folder.mkdir()
    monkeypatch.setattr(environments, "REQUIREMENTS", folder)
    path = folder / "toy.txt"
    path.write_text("# none\n")
    return path


def test_an_environment_is_made_once_and_made_again_if_it_is_not_whole(requirements: Path, tmp_path: Path) -> None:
    folder = tmp_path / "engines"
    assert installed("toy", folder) is None
    python = install("toy", folder)
    shown = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True).stdout
    assert shown == f"{folder / 'toy'}\n"
    marker = folder / "toy" / "marker"
    marker.touch()
    assert install("toy", folder) == installed("toy", folder) == python
    assert marker.exists()

    (folder / "toy" / environments.STAMP).unlink()
    assert installed("toy", folder) is None
    assert install("toy", folder) == python
    assert not marker.exists()

    requirements.write_text("# still none\n")
    assert installed("toy", folder) is None


def test_what_could_not_be_installed_leaves_nothing_but_its_log(requirements: Path, tmp_path: Path) -> None:
    requirements.write_text("./is-not-here-1.0-py3-none-any.whl\n")
    folder = tmp_path / "engines"
    with pytest.raises(KvswarmError, match=r"^toy could not be installed\. The log, .*toy\.log, ends: .*is-not-here"):
        install("toy", folder)
    assert not (folder / "toy").exists()
    assert installed("toy", folder) is None


def test_every_engine_has_its_packages_pinned() -> None:
    assert environments.names() == sorted(KINDS)
    for engine in KINDS:
        lines = (environments.REQUIREMENTS / f"{engine}.txt").read_text().splitlines()
        packages = [line for line in lines if not line.startswith("#")]
        assert len(packages) > 20
        assert all(re.match(r"[A-Za-z0-9_.-]+==\S+( ;|$)", line) for line in packages)
        assert len({line.split("==")[0].lower() for line in packages}) == len(packages)
