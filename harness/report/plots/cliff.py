"""Where hits collapse: hit rate and TTFT of several runs under rising pressure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.analysis.cliff import Place
from harness.report.palette import EXPECTED, HIT, OTHER, SOFT, TIME
from harness.report.plot import DASHED, LOG, SHARE, SOLID, Plot, colours, dashes, layer, plot, quantity, tips, upright

RATES, TIMES = "Hit rate against pressure", "TTFT against pressure"


def cliff_plots(names: tuple[str, str], engine: str, places: Sequence[Place], most_ms: float) -> list[Plot]:
    """Of one engine. `most_ms`: where the axis of times ends."""
    pressures = [float(one.pressure) for one in places]
    scale = LOG | {"domain": [min(pressures) / 1.15, max(pressures) * 1.15]}
    across = quantity(
        "pressure", "pressure: working set as a multiple of the KV capacity", scale=scale,
        axis={"values": pressures, "format": "~g", "labelOverlap": False},
    )  # fmt: skip
    fits: list[dict[str, Any]] = []
    if min(pressures) < 1 < max(pressures) or 1 in pressures:
        row = [{"pressure": 1, "name": "fits \u2190 1 \u2192 does not"}]
        rule = {"type": "rule", "color": SOFT, "strokeDash": [2, 3]}
        fits = [layer(rule, row, x=across)]
    rates = [
        {"which": which, "pressure": float(one.pressure), "rate": getattr(one, which)}
        for which in ("shareable", "expected", "measured")
        for one in places
        if getattr(one, which) is not None
    ]
    looks = {"shareable": (OTHER, DASHED), "expected": (EXPECTED, DASHED), "measured": (HIT, SOLID)}
    times = [
        {"which": which, "pressure": float(one.pressure), "ms": value}
        for one in places
        for which, value in (("p50", one.ttft_p50_ms), ("p99", one.ttft_p99_ms))
        if value is not None
    ]
    of_rates = layer(
        {"type": "line", "point": {"filled": True, "size": 45}}, rates, x=across,
        y=upright("rate", scale=SHARE, form=".0%"),
        color=colours("which", {which: colour for which, (colour, _) in looks.items()}),
        strokeDash=dashes("which", {which: dash for which, (_, dash) in looks.items()}),
        tooltip=tips(which=("", ""), pressure=("pressure", "~g"), rate=("of the prompt tokens", ".1%")),
    )  # fmt: skip
    of_times = layer(
        {"type": "line", "point": {"filled": True, "size": 45}}, times, x=across,
        y=upright("ms", scale={"domain": [0, most_ms], "nice": True}, form=",~r"),
        color=colours("which", {"p50": TIME, "p99": TIME}),
        strokeDash=dashes("which", {"p50": SOLID, "p99": DASHED}),
        tooltip=tips(which=("", ""), pressure=("pressure", "~g"), ms=("TTFT, ms", ",.1f")),
    )  # fmt: skip
    title = f" ({engine})" if engine else ""
    return [
        plot(names[0], f"{RATES}{title}", "% of the prompt tokens", [*fits, of_rates], height=240),
        plot(names[1], f"{TIMES}{title}", "ms", [*fits, of_times], height=160),
    ]
