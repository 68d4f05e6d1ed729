"""Build the virtual environment .venv from the lock files; do nothing if it is up to date. `make setup` runs it.

It needs nothing but a Python, which must not be the one in .venv, as that is removed before a new one is made.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PACKAGES, ENGINE, PROJECT = ROOT / "requirements.lock", ROOT / "requirements-embedded.lock", ROOT / "pyproject.toml"
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"

WITHOUT_ENGINE = (
    "going on without it, as there seems to be no wheel of it for this system: make demo and some tests will not work; "
    "for runs take llama-server from your system's packages, brew or a build, or any OpenAI-compatible server"
)


class SetUpError(Exception):
    """str() is one sentence: what went wrong and what to do about it."""


def main() -> int:
    try:
        set_up()
    except SetUpError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    return 0


def set_up() -> None:
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        raise SetUpError(
            f"kvswarm needs Python 3.11 to 3.13, not {PYTHON}: name one, as in `make setup PYTHON=python3.12`."
        )
    # The place counts, because the scripts of an environment hold its path.
    environment = fingerprint(PYTHON, str(ROOT), PACKAGES.read_text(), ENGINE.read_text())
    project = fingerprint(environment, PROJECT.read_text())
    if read_stamp("environment") != environment:
        build()
        write_stamp("environment", environment)
    if read_stamp("project") != project:
        pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
        write_stamp("project", project)


def build() -> None:
    """Make the environment from nothing, so that nothing old stays in it."""
    started = time.monotonic()
    say(f"making .venv with {PYTHON}")
    shutil.rmtree(VENV, ignore_errors=True)
    if subprocess.call([sys.executable, "-m", "venv", VENV]):
        raise SetUpError(
            f"{PYTHON} cannot make environments: install its venv module (Debian: apt install python3-venv)."
        )
    say("installing the packages of requirements.lock (about 150 MB to download, unless pip has them already)")
    pip("--require-hashes", "--requirement", str(PACKAGES))
    say("installing llama.cpp's server (34 MB)")
    try:
        pip("--require-hashes", "--only-binary", ":all:", "--requirement", str(ENGINE))
    except SetUpError:
        say(WITHOUT_ENGINE)
    say(f"done in {time.monotonic() - started:.0f} s")


def pip(*arguments: str) -> None:
    command = [str(VENV / "bin" / "pip"), "--disable-pip-version-check", "install", "--quiet", *arguments]
    if subprocess.call(command):
        raise SetUpError("pip failed: its message above says why; run make setup again when that is mended.")


def fingerprint(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_stamp(name: str) -> str:
    path = VENV / f"{name}.stamp"
    return path.read_text() if path.exists() else ""


def write_stamp(name: str, value: str) -> None:
    (VENV / f"{name}.stamp").write_text(value)


def say(line: str) -> None:
    print(f"set-up: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
