"""A metrics page as a value that can be held against another one."""

from __future__ import annotations

import math
import re
from typing import Any

from prometheus_client.parser import text_string_to_metric_families


def page(text: str) -> dict[str, Any]:
    """Family -> its type and its series, in the order of their names; a number that is none is None."""
    families = sorted(text_string_to_metric_families(text), key=lambda family: family.name)
    return {
        family.name: {
            "type": family.type,
            "series": dict(sorted((series(one.name, one.labels), number(one.value)) for one in family.samples)),
        }
        for family in families
    }


def series(name: str, labels: dict[str, str]) -> str:
    return f"{name}{{{','.join(f'{label}={value}' for label, value in sorted(labels.items()))}}}"


def number(value: float) -> float | None:
    return None if math.isnan(value) else value


def value_of(text: str, name: str, **labels: str) -> float | None:
    """The sum of the series of that name with these labels; None: there is none."""
    values = [
        one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name == name and labels.items() <= one.labels.items()
    ]
    return sum(values) if values else None


def growth(before: str, after: str) -> dict[str, float]:
    """By how much each series grew that counts tokens or requests, not seconds, HTTP or the process."""
    pages = [
        {
            series(one.name, one.labels): one.value
            for family in text_string_to_metric_families(text)
            for one in family.samples
            if family.type in ("counter", "histogram") and COUNTS.fullmatch(one.name)
        }
        for text in (before, after)
    ]
    return {name: value - pages[0].get(name, 0.0) for name, value in pages[1].items()}


COUNTS = re.compile(
    r"(vllm|sglang):(?!http|process|scheduler|get_loads)(\w*_(total|count)|(?!\w*_seconds)\w*_(sum|bucket))"
)
