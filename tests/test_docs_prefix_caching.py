"""docs/prefix-caching.md: its servers are started, its commands typed, and what it shows comes out."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "prefix-caching.md").read_text(encoding="utf-8")
SERVERS = re.findall(r"^kvswarm (serve .*) --port (\d+)(.*)$", PAGE, re.MULTILINE)
[PROGRAM] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
MARK = "@@@ next command"
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": str(ROOT),
    "PYTHONUTF8": "1",
    "COLUMNS": "100",
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

STEPS: list[tuple[str, str]] = [
    step
    for console in re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for step in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", console, re.MULTILINE)
]
"""Commands, and what each prints; `...` stands for anything, and so does the number before `ms`."""


def without_times(text: str) -> str:
    return re.sub(r"[\d.,]+ ms", "N ms", text)


@contextmanager
def started(*words: str, folder: Path) -> Iterator[IO[str]]:
    """What a server prints that `kvswarm` starts on any free port."""
    command = [sys.executable, "-m", "harness.cli", *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=ENVIRONMENT) as process:
        try:
            assert process.stdout is not None
            yield process.stdout
        finally:
            process.terminate()


def port_of(lines: IO[str]) -> str:
    return next(told[1] for line in lines if (told := re.search(r" listens on \S+:(\d+)", line)))


def typed(folder: Path) -> list[str]:
    """What each command of the page prints, typed one after the other into one shell."""
    (folder / "ask.py").write_text(PROGRAM)
    script = 'kvswarm() { python3 -m harness.cli "$@"; }\n' + "".join(
        f"echo '{MARK}'\n{command}\n" for command, _ in STEPS
    )
    with ExitStack() as servers:
        prints = [
            servers.enter_context(started(*before.split(), *after.split(), folder=folder))
            for before, _, after in SERVERS
        ]
        for (_, port, _), lines in zip(SERVERS, prints, strict=True):
            script = re.sub(rf"\b{port}\b", port_of(lines), script)
        done = subprocess.run(
            ["bash"], input=script, capture_output=True, text=True, timeout=400, env=ENVIRONMENT, cwd=folder
        )
    assert done.stderr == ""
    _, *outputs = done.stdout.split(f"{MARK}\n")
    return outputs


def test_what_the_page_shows_comes_out(tmp_path: Path) -> None:
    assert [
        f"$ {command}\n{output}"
        for (command, shown), output in zip(STEPS, typed(tmp_path), strict=True)
        if not doctest.OutputChecker().check_output(without_times(shown), without_times(output), FLAGS)
    ] == []


def test_the_page_has_servers_and_commands() -> None:
    assert len(SERVERS) == 5
    assert len(STEPS) > 70
