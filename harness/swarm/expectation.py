"""What hits to expect while a leg of a run goes on, for the page: worked out by a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import gevent
from gevent import subprocess
from gevent.queue import Queue

WIDTH_NS = 3_000_000_000
"""Of a window: as long as workers report at a time."""
MOST_WINDOWS = 600
MOST_WAITING_BYTES = 32 << 20
"""Of reports that the process has not read yet."""
COMMAND = ("nice", "-n", "10", sys.executable, "-m", "harness.analysis.expected_live")


class Windows:
    """Sums over windows of equal length; when there are too many, each two become one."""

    def __init__(self) -> None:
        self._every = 1
        self._sums: dict[int, list[int]] = {}

    def add(self, number: int, sums: Sequence[int]) -> None:
        key = number // self._every
        self._sums[key] = [one + more for one, more in zip(self._sums.get(key, [0] * 4), sums, strict=True)]
        if len(self._sums) > MOST_WINDOWS:
            before, self._sums, self._every = self._sums, {}, 2 * self._every
            for key, kept in before.items():
                self.add(key * self._every // 2, kept)

    def lines(self) -> list[dict[str, float]]:
        """As `expected_windows` has them, but since the load began: of the requests that report cached tokens, or of
        all if none does."""
        width_s = self._every * WIDTH_NS / 1e9
        first = 2 if any(sums[2] for sums in self._sums.values()) else 0
        return [
            {
                "start_s": key * width_s,
                "end_s": (key + 1) * width_s,
                "prompt_tokens": sums[first],
                "expected": sums[first + 1],
            }
            for key, sums in sorted(self._sums.items())
        ]


class LiveExpectation:
    """Of one leg. Reports may come before `begin`; they wait."""

    def __init__(self, leg: int = 0) -> None:
        self.leg = leg
        """Number within the run."""
        self._why = ""
        self._unknown: dict[int, str] = {}
        self._windows: dict[int, Windows] = {}
        self._origin_ns = 0
        self._until_ns = 0
        self._process: Any = None
        self._is_over = False
        self._lines: Queue[bytes] = Queue()
        self._waiting_bytes = 0
        self._greenlets: list[gevent.Greenlet] = []

    def begin(self, run_id: str, origin_ns: int, workers: Sequence[int], targets: Mapping[int, Any]) -> None:
        """`targets`: the record of each, as in run.json, by its number within the run."""
        self._origin_ns = origin_ns
        begin = {"run_id": run_id, "origin_ns": origin_ns, "width_ns": WIDTH_NS, "workers": workers, "targets": targets}
        # Ctrl-C in a terminal is for the master alone, which ends this one.
        self._process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._greenlets = [gevent.spawn(self._write, _line(begin)), gevent.spawn(self._read)]

    def take(self, worker: int, news: Mapping[str, Any]) -> None:
        """What `RequestNews.take` gave."""
        if self._is_over:
            return
        line = _line({"worker": worker, **news})
        self._waiting_bytes += len(line)
        self._lines.put(line)
        if self._waiting_bytes > MOST_WAITING_BYTES:
            self.stop("the model of the cache does not keep up with the load on this machine")

    def stop(self, why: str) -> None:
        """Nothing more is expected; `why` can follow "as". What was worked out stays."""
        self._why = self._why or why
        self.close()

    def close(self) -> None:
        """End the process."""
        self._is_over = True
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()
        greenlets, self._greenlets = self._greenlets, []
        gevent.spawn(gevent.killall, greenlets)  # one of them may have called this

    def of_target(self, number: int) -> dict[str, Any]:
        """For the page: windows, until_s (what ended before is in them), and why there is no more."""
        windows = self._windows.get(number)
        return {
            "windows": [] if windows is None else windows.lines(),
            "until_s": max(0.0, (self._until_ns - self._origin_ns) / 1e9),
            "why": self._unknown.get(number, self._why),
        }

    def _write(self, begin: bytes) -> None:
        process, line = self._process, begin
        try:
            while True:
                process.stdin.write(line)
                process.stdin.flush()
                line = self._lines.get()
                self._waiting_bytes -= len(line)
        except OSError:  # it has ended, which is for `_read` to tell
            return

    def _read(self) -> None:
        for line in self._process.stdout:
            told = json.loads(line)
            if "stopped" in told:
                self.stop(told["stopped"])
                return
            self._until_ns = told["until_ns"]
            self._unknown = {int(number): why for number, why in told["unknown"].items()}
            for number, windows in told["windows"].items():
                of_target = self._windows.setdefault(int(number), Windows())
                for window, *sums in windows:
                    of_target.add(window, sums)
        self.stop("the process of the cache's model has ended; the terminal has its last words")


def _line(plain: Any) -> bytes:
    return json.dumps(plain).encode() + b"\n"
