"""docs/targets.md keeps up with the code."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import pytest

from harness.engines.base import Meaning
from harness.engines.detect import ADAPTERS
from harness.engines.openai import OpenAIEngine
from harness.engines.target import EngineName, IdentityByHand, Prometheus, Target, resolve_target

PAGE = (Path(__file__).parents[2] / "docs" / "targets.md").read_text()

TABLES = [
    [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()]
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)
]
"""Rows of cells; the first is the head, the second the rule under it."""


def tables(*head: str) -> list[list[list[str]]]:
    """The rows of each table with this head."""
    return [rows[2:] for rows in TABLES if rows[0] == list(head)]


KEYS, OF_PROMETHEUS = ({row[0].strip("`"): row[1] for row in rows} for rows in tables("key", "default", "meaning"))
[BY_HAND] = tables("key", "meaning")
[METRICS] = tables("name", "is", "told by")
[OFFERS] = tables("", "vLLM", "SGLang", "llama.cpp", "mlx-lm", "others")


def test_every_key_of_a_target_file_is_on_the_page_in_the_order_of_the_model() -> None:
    assert list(KEYS) == list(Target.model_fields)
    assert list(OF_PROMETHEUS) == [f"prometheus.{key}" for key in Prometheus.model_fields]
    assert [key.strip("`") for key, _ in BY_HAND] == [f"identity.{key}" for key in IdentityByHand.model_fields]


@pytest.mark.parametrize("key", ["connect_timeout_s", "read_timeout_s", "tls_verify", "pin_slots"])
def test_defaults_on_the_page_are_those_of_the_model(key: str) -> None:
    on_page = {"true": "1", "false": "0"}.get(KEYS[key].strip("`"), KEYS[key])
    assert float(on_page) == float(Target.model_fields[key].default)


def test_defaults_of_prometheus_on_the_page_are_those_of_the_model() -> None:
    assert float(OF_PROMETHEUS["prometheus.timeout_s"]) == Prometheus.model_fields["timeout_s"].default
    required = {f"prometheus.{key}" for key, field in Prometheus.model_fields.items() if field.is_required()}
    assert {key for key, default in OF_PROMETHEUS.items() if default == "required"} == required


def test_every_engine_is_on_the_page() -> None:
    names = list(typing.get_args(EngineName))
    [row] = re.findall(r"^\| `engine` \| detected.*$", PAGE, re.MULTILINE)
    assert [name for name in names if f"`{name}`" in row] == names
    assert OFFERS[0] == ["`engine`", *(f"`{name}`" for name in names)]
    assert [adapter.name for adapter in ADAPTERS] == names


def test_the_meanings_of_metrics_on_the_page_are_those_of_the_adapters() -> None:
    titles = {"vllm": "vLLM", "sglang": "SGLang", "llama-cpp": "llama.cpp"}
    told_by = {
        name: [
            titles[adapter.name] for adapter in ADAPTERS if any(metric.meaning == name for metric in adapter.metrics)
        ]
        for name in typing.get_args(Meaning)
    }
    on_page = {name: row[2].split(", ") for row in METRICS for name in re.findall(r"`(\w+)`", row[0])}
    assert on_page == told_by


@pytest.mark.parametrize(
    ("row", "offers"),
    [
        ("prompts of token ids", lambda adapter: adapter.takes_token_ids),
        ("cache salt", lambda adapter: adapter.takes_cache_salt),
        ("slots to choose", lambda adapter: adapter.pins_slots),
    ],
)
def test_what_requests_may_carry_is_on_the_page(row: str, offers: typing.Callable[[type[OpenAIEngine]], bool]) -> None:
    [cells] = [cells for cells in OFFERS if cells[0] == row]
    assert cells[1:] == ["yes" if offers(adapter) else "no" for adapter in ADAPTERS]


def test_the_examples_of_the_page_are_targets(tmp_path: Path) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    [prometheus] = re.findall(r"^    prometheus:\n(?:      .*\n)+", PAGE, re.MULTILINE)
    (tmp_path / "example.yaml").write_text(example + prometheus.replace("\n    ", "\n").lstrip())
    target = resolve_target("example", tmp_path)
    assert (target.name, target.model, target.api_key_env) == ("example", "qwen3-32b", "LLM_API_KEY")
    assert [target.owns(url) for url in target.metrics_urls] == [False, False]
    assert target.identity == IdentityByHand(capacity_tokens=1_200_000)
    assert target.prometheus is not None
    assert target.prometheus.selector == {"job": "vllm", "namespace": "search"}
