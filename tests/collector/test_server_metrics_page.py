"""The examples in docs/server-metrics.md."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.engines.target import Prometheus, resolve_target

PAGE = (Path(__file__).parents[2] / "docs/server-metrics.md").read_text()
TARGET, CONFIG = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_target_file_can_be_used(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(TARGET)
    assert resolve_target(str(file)).prometheus == Prometheus(
        url="http://prometheus.example.org:9090", selector={"job": "vllm"}, api_key_env="PROMETHEUS_TOKEN"
    )


def test_prometheus_takes_the_scrape_configuration(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool here (Debian: apt-get install --no-install-recommends prometheus)")
    file = tmp_path / "prometheus.yml"
    file.write_text(CONFIG)
    subprocess.run([promtool, "check", "config", file], check=True, capture_output=True)
