"""A Grafana dashboard over the exported metrics of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.exchange.families import (
    CACHED_TOKENS,
    E2E,
    OUTPUT_TOKENS,
    PROMPT_TOKENS,
    REQUESTS,
    RUN,
    SERVER,
    TPOT,
    TTFT,
)
from harness.exchange.request_series import STEP_NS

SCHEMA_VERSION = 39
"""Of Grafana 10.4; newer ones read it as well."""
WHERE = 'run_id="$run",target=~"$target"'
_WINDOW = "[$__rate_interval]"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_COLUMNS = 24
"""How wide a dashboard is, in Grafana's units."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot."""

    title: str
    help: str
    unit: str
    """Grafana's name of it: s, percentunit, reqps, short, ..."""
    queries: Sequence[tuple[str, str]]
    """(PromQL, legend) of each line."""


def _growth(name: str, by: str, matching: str = "") -> str:
    return f"sum by ({by}) (rate({name}{{{WHERE}{matching}}}{_WINDOW}))"


def _quantiles(name: str) -> list[tuple[str, str]]:
    return [
        (f"histogram_quantile({share}, {_growth(name, 'le, cache, target')})", f"{label} {{{{cache}}}} {{{{target}}}}")
        for label, share in _QUANTILES.items()
    ]


def panels() -> list[Panel]:
    """In reading order, two a row."""
    (requests,), (prompt,), (cached,), (output,) = (
        family.stored for family in (REQUESTS, PROMPT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS)
    )
    server = {meaning: family.stored[0] for meaning, family in SERVER.items()}
    ttft, tpot, e2e = (family.stored[0] for family in (TTFT, TPOT, E2E))
    by_server = _growth(server["cached_prompt_tokens"], "target")
    reported = ',cached="reported"'
    return [
        Panel(
            "Token hit rate",
            "Cached / prompt tokens, both summed: as each request reports it, and by the server's counters.",
            "percentunit",
            [
                (f"{_growth(cached, 'target')} / {_growth(prompt, 'target', reported)}", "requests {{target}}"),
                (f"{by_server} / {_growth(server['prompt_tokens'], 'target')}", "counters {{target}}"),
                (
                    f"{by_server} / ({by_server} + {_growth(server['computed_prompt_tokens'], 'target')})",
                    "counters {{target}}",
                ),
            ],
        ),
        Panel("TTFT, hit and miss", "hit: half of the prompt was cached, or more.", "s", _quantiles(ttft)),
        Panel("TPOT, hit and miss", "Time per output token after the first.", "s", _quantiles(tpot)),
        Panel("Time to the end of the answer", "By hit and miss.", "s", _quantiles(e2e)),
        Panel(
            "Running and waiting",
            "By the server's gauges.",
            "short",
            [
                (f"sum by (target) ({server[f'{what}_requests']}{{{WHERE}}})", f"{what} {{{{target}}}}")
                for what in ("running", "waiting")
            ],
        ),
        Panel(
            "KV cache in use",
            "Of the fullest replica.",
            "percentunit",
            [(f"max by (target) ({server['kv_usage']}{{{WHERE}}})", "{{target}}")],
        ),
        Panel(
            "Requests",
            "By what became of them.",
            "reqps",
            [(_growth(requests, "target, status"), "{{status}} {{target}}")],
        ),
        Panel(
            "Tokens a second",
            "Output, prompt, and what of the prompt was cached.",
            "short",
            [
                (_growth(output, "target"), "output {{target}}"),
                (_growth(prompt, "target"), "prompt {{target}}"),
                (_growth(cached, "target"), "cached {{target}}"),
            ],
        ),
        Panel(
            "Preemptions and evictions",
            "By the server's counters, a second.",
            "short",
            [
                (_growth(server["preemptions"], "target"), "preemptions {{target}}"),
                (_growth(server["evicted_tokens"], "target"), "evicted tokens {{target}}"),
            ],
        ),
    ]


def dashboard() -> dict[str, Any]:
    """As Grafana imports it: it asks for the data source, and has a choice of run and target."""
    (run,) = RUN.stored
    return {
        "title": "kvswarm run",
        "uid": "kvswarm-run",
        "tags": ["kvswarm"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "timezone": "utc",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
                _choice("run", "Run", f"label_values({run}, run_id)", several=False),
                _choice("target", "Target", f'label_values({run}{{run_id="$run"}}, target)', several=True),
            ]
        },
        "panels": list(_placed()),
    }


def _choice(name: str, label: str, query: str, *, several: bool) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 2,
        "multi": several,
        "includeAll": several,
        "allValue": ".*" if several else None,
    }


def _placed() -> Iterator[dict[str, Any]]:
    width, height = _COLUMNS // 2, 8
    for number, panel in enumerate(panels()):
        yield {
            "id": number + 1,
            "type": "timeseries",
            "title": panel.title,
            "description": panel.help,
            "datasource": _SOURCE,
            "gridPos": {"x": number % 2 * width, "y": number // 2 * height, "w": width, "h": height},
            "interval": f"{STEP_NS // 1_000_000_000}s",
            "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
            "targets": [
                {"refId": chr(ord("A") + place), "datasource": _SOURCE, "expr": query, "legendFormat": legend}
                for place, (query, legend) in enumerate(panel.queries)
            ],
        }
