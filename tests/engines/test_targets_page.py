"""docs/targets.md keeps up with the code."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import pytest

from harness.engines.target import EngineName, Target, resolve_target

PAGE = (Path(__file__).parents[2] / "docs" / "targets.md").read_text()

KEYS = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE))


def test_every_key_of_a_target_file_is_on_the_page_in_the_order_of_the_model() -> None:
    assert list(KEYS) == list(Target.model_fields)


@pytest.mark.parametrize("key", ["connect_timeout_s", "read_timeout_s", "tls_verify"])
def test_defaults_on_the_page_are_those_of_the_model(key: str) -> None:
    assert float(KEYS[key].strip("` ").replace("true", "1")) == float(Target.model_fields[key].default)


def test_every_engine_is_on_the_page() -> None:
    [row] = re.findall(r"^\| `engine` .*$", PAGE, re.MULTILINE)
    assert [name for name in typing.get_args(EngineName) if f"`{name}`" in row] == list(typing.get_args(EngineName))


def test_the_example_of_the_page_is_a_target(tmp_path: Path) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "example.yaml").write_text(example)
    target = resolve_target("example", tmp_path)
    assert (target.name, target.model, target.api_key_env) == ("example", "qwen3-32b", "LLM_API_KEY")
    assert not target.owns(target.metrics_url or "")
