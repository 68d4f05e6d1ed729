"""KVSWARM_NO_SKIPS=1: on a machine that has everything, a skipped test is a failed one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

OPTIONS = ["-c", ROOT / "pyproject.toml", "-p", "tests.conftest", "-p", "no:cacheprovider"]
IN_A_TEST = "import pytest\ndef test_it(): pytest.skip('no engine here')\n"
BY_A_MARK = "import pytest\n@pytest.mark.skipif(True, reason='no engine here')\ndef test_it(): ...\n"
OF_A_MODULE = "import pytest\npytest.importorskip('no_engine_here')\n"
OPTIONAL = "import pytest\n@pytest.mark.optional\ndef test_it(): pytest.skip('no folder of traces here')\n"
EXPECTED_TO_FAIL = "import pytest\n@pytest.mark.xfail\ndef test_it(): raise ValueError\n"


def outcome(tmp_path: Path, source: str, no_skips: str) -> tuple[int, str]:
    path = tmp_path / "test_sample.py"
    path.write_text(source)
    return run_pytest(no_skips, *OPTIONS, path)


def run_pytest(no_skips: str, *words: object) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", *map(str, words)]
    # Not as a part of the run that this test is in.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"KVSWARM_NO_SKIPS": no_skips}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("source", [IN_A_TEST, BY_A_MARK, OF_A_MODULE], ids=["in a test", "mark", "module"])
def test_a_skip_fails_only_where_it_must_not_be(tmp_path: Path, source: str) -> None:
    code, text = outcome(tmp_path, source, no_skips="1")
    assert code in (1, 2)  # 2: at collection
    assert "skipped, but KVSWARM_NO_SKIPS=1" in text
    assert "engine" in text
    code, text = outcome(tmp_path, source, no_skips="")
    assert code in (0, 5)  # 5: nothing was collected
    assert "1 skipped" in text


@pytest.mark.parametrize(("source", "word"), [(OPTIONAL, "1 skipped"), (EXPECTED_TO_FAIL, "1 xfailed")])
def test_optional_tests_may_be_skipped_anywhere(tmp_path: Path, source: str, word: str) -> None:
    code, text = outcome(tmp_path, source, no_skips="1")
    assert code == 0
    assert word in text


def test_a_skip_fails_in_each_of_several_processes(tmp_path: Path) -> None:
    for number, source in enumerate([IN_A_TEST, IN_A_TEST, BY_A_MARK, OF_A_MODULE]):
        (tmp_path / f"test_sample_{number}.py").write_text(source)
    side_by_side = ["-n", 2, "--no-loadscope-reorder"]
    code, text = run_pytest("1", *OPTIONS, *side_by_side, tmp_path, "--continue-on-collection-errors")
    assert code == 1
    assert text.count("skipped, but KVSWARM_NO_SKIPS=1") >= 4
    assert "skipped" not in text.splitlines()[-1]
