"""docs/engines: a page for each engine, and what it says is what the adapter has."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

from harness.engines.detect import ADAPTERS
from harness.engines.openai import OpenAIEngine
from harness.engines.target import resolve_target

FOLDER = Path(__file__).parents[1] / "docs" / "engines"
ENGINES = [adapter for adapter in ADAPTERS if adapter is not OpenAIEngine]
HEADINGS = ["Flags", "Counters", "What is hit", "Isolation", "Reset", "What to watch", "The least target file"]

each_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)


def page(engine: type[OpenAIEngine]) -> str:
    return (FOLDER / f"{engine.name}.md").read_text(encoding="utf-8")


def section(engine: type[OpenAIEngine], heading: str) -> str:
    return page(engine).split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_each_engine_has_a_page_and_nothing_else_has() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {engine.name for engine in ENGINES}


@each_engine
def test_every_page_answers_the_same_questions(engine: type[OpenAIEngine]) -> None:
    assert re.findall(r"^## (.*)$", page(engine), re.MULTILINE) == HEADINGS


@each_engine
def test_the_counters_on_the_page_are_those_of_the_adapter(engine: type[OpenAIEngine]) -> None:
    assert re.findall(r"^\| (`\w+`) \| (.*) \| (.*) \|$", section(engine, "Counters"), re.MULTILINE) == [
        (f"`{metric.meaning}`", ", ".join(f"`{name}`" for name in metric.names), metric.counts)
        for metric in engine.metrics
    ]


@each_engine
def test_every_flag_that_the_adapter_speaks_of_is_on_the_page(engine: type[OpenAIEngine]) -> None:
    flag = r"--[a-z][a-z-]+|\b[A-Z]+_[A-Z_]*MODE\b"
    spoken_of = set(re.findall(flag, inspect.getsource(sys.modules[engine.__module__])))
    assert len(spoken_of) >= 3
    assert spoken_of - set(re.findall(flag, page(engine))) == set()


@each_engine
def test_a_salt_is_on_the_page_if_the_adapter_sends_one(engine: type[OpenAIEngine]) -> None:
    isolation = section(engine, "Isolation")
    if engine.takes_cache_salt:
        assert [field for field in engine.salt_fields if f"`{field}`" not in isolation] == []
    else:
        assert isolation.startswith("\nNone")
    assert ("pin_slots" in isolation) == engine.pins_slots


@each_engine
def test_the_least_target_file_can_be_used(engine: type[OpenAIEngine], tmp_path: Path) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", section(engine, "The least target file"), re.DOTALL)
    (tmp_path / "least.yaml").write_text(example)
    target = resolve_target("least", tmp_path)
    assert target.url.startswith("http://127.0.0.1:")
