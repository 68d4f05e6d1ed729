"""report.html of a run that has ended, made by a process of its own: pandas would hold up the loop of this one."""

from __future__ import annotations

import logging
import subprocess
import sys

import gevent

from harness.command import kvswarm
from harness.record.storage import Folder

logger = logging.getLogger(__name__)

NAME = "report.html"


class ReportFile:
    """Begins to be made at once, beside all that goes on; a run is as good without it."""

    def __init__(self, folder: Folder) -> None:
        """`folder`: the run's directory, with its last run.json."""
        self._folder = folder
        self._making = gevent.spawn(self._make)

    def wait(self) -> None:
        """Until it is there, or why not is said."""
        self._making.join()

    def _make(self) -> None:
        command = ["nice", "-n", "10", sys.executable, "-m", "harness.cli", "report", self._folder.url, "--html"]
        try:
            made = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        except OSError as error:
            self._say_why_not(str(error))
            return
        if made.returncode:
            self._say_why_not((made.stderr.strip().splitlines() or [f"exit code {made.returncode}"])[-1])
        else:
            print(f"kvswarm: the report with plots is {self._folder.name_of(NAME)}", flush=True)

    def _say_why_not(self, reason: str) -> None:
        logger.warning(
            "kvswarm: %s could not be made (%s); the run is complete without it, try: %s report %s --html",
            self._folder.name_of(NAME), reason.removeprefix("kvswarm: ").rstrip("."), kvswarm(), self._folder.url,
        )  # fmt: skip
