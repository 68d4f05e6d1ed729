"""A real Prometheus server on loopback, for as long as a block of code runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from harness.embedded.process import free_port

READY_S = 60.0


@contextmanager
def running_prometheus(folder: Path, jobs: dict[str, list[str]], interval: str = "1s") -> Iterator[str]:
    """Its URL. `jobs`: name -> host:port of each page. Skips the test where the program is missing."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("there is no prometheus here (Debian: apt-get install --no-install-recommends prometheus)")
    port = free_port()
    # JSON is YAML, too.
    scrapes = [
        {"job_name": job, "static_configs": [{"targets": pages, "labels": {"site": "lab"}}]}
        for job, pages in jobs.items()
    ]
    config = folder / "prometheus.yml"
    config.write_text(json.dumps({"global": {"scrape_interval": interval}, "scrape_configs": scrapes}))
    log = folder / "prometheus.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for_scrapes(url, process, log, sum(map(len, jobs.values())))
        yield url
    finally:
        process.kill()
        process.wait()


def wait_for_scrapes(url: str, process: subprocess.Popen[bytes], log: Path, pages: int) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            found = ask(url, "up")
        except requests.RequestException:
            found = []
        if len(found) == pages:
            return
        time.sleep(0.1)
    raise AssertionError(f"prometheus was not up in time; its log ends: {log.read_text()[-1000:]}")


def ask(url: str, query: str) -> list[dict[str, object]]:
    answer = requests.get(f"{url}/api/v1/query", params={"query": query}, timeout=10)
    answer.raise_for_status()
    result: list[dict[str, object]] = answer.json()["data"]["result"]
    return result
