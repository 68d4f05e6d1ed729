"""Metrics pages: recorded ones, read line by line, and made-up ones of vLLM."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.engines.base import Metric


def names_on(page: Path) -> set[str]:
    return {match[0] for match in re.finditer(r"^[a-z:_A-Z0-9]+", page.read_text(), re.MULTILINE)}


def value(metric: Metric, page: Path) -> float | None:
    """What the page tells of `metric`, by the rules of its docstrings; metrics with labels are not needed here."""
    assert not metric.labels
    for name in metric.names:
        found = re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", page.read_text(), re.MULTILINE)
        if found:
            return sum(map(float, found))
    return 0.0 if metric.absent_is_zero else None


def change(metrics: Sequence[Metric], meaning: str, before: Path, after: Path) -> float:
    [metric] = [metric for metric in metrics if metric.meaning == meaning]
    first, last = value(metric, before), value(metric, after)
    assert first is not None
    assert last is not None
    return last - first


def config_page(*engines: str) -> str:
    """A page with the labels of vLLM's cache configuration, such as `block_size="16"`, for each engine."""
    lines = [f'vllm:cache_config_info{{engine="{number}",{labels}}} 1.0\n' for number, labels in enumerate(engines)]
    return "# TYPE vllm:cache_config_info gauge\n" + "".join(lines)
