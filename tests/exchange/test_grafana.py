"""The dashboard asks for what is exported, and for nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.exchange.families import FAMILIES
from harness.exchange.grafana import dashboard

STORED = {name: family for family in FAMILIES for name in family.stored}


def queries() -> list[str]:
    panels: list[dict[str, Any]] = dashboard()["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_every_name_and_label_is_exported() -> None:
    texts = [*queries(), *(choice["query"]["query"] for choice in dashboard()["templating"]["list"][1:])]
    used = {name for text in texts for name in re.findall(r"kvswarm_\w+", text)}
    assert used <= STORED.keys()
    # The words of what is asked for: hit rate, TTFT and TPOT by hit and miss, running and waiting.
    assert used >= {
        "kvswarm_cached_tokens_total",
        "kvswarm_prompt_tokens_total",
        "kvswarm_ttft_seconds_bucket",
        "kvswarm_tpot_seconds_bucket",
        "kvswarm_server_running_requests",
        "kvswarm_server_waiting_requests",
    }
    for text in queries():
        for name, matchers in re.findall(r"(kvswarm_\w+)\{(.*?)\}", text):
            labels = set(re.findall(r"(\w+)=~?\"", matchers))
            assert labels <= {"run_id", "target", *STORED[name].labels}
        for grouped in re.findall(r"by \((.*?)\)", text):
            assert set(grouped.split(", ")) <= {"le", "target", "cache", "status"}


def test_no_line_is_of_several_targets_together() -> None:
    for panel in dashboard()["panels"]:
        for line in panel["targets"]:
            assert all("target" in by.split(", ") for by in re.findall(r"by \((.*?)\)", line["expr"])), panel["title"]
            assert "{{target}}" in line["legendFormat"], panel["title"]


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool here (Debian: apt-get install --no-install-recommends prometheus)")
    rules = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "20s")}
        for number, query in enumerate(queries())
    ]
    file = tmp_path / "rules.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", file], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_panels_have_their_own_place_and_number() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    for panel in panels:
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def test_the_command_writes_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["export", "grafana", "--output", str(tmp_path / "kvswarm.json")])
    assert done.exit_code == 0
    assert json.loads((tmp_path / "kvswarm.json").read_text()) == dashboard()
    done = CliRunner().invoke(app, ["export", "grafana", "--output", str(tmp_path / "no" / "kvswarm.json")])
    assert "kvswarm.json cannot be written: No such file or directory." in str(done.exception)
