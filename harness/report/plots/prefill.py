"""TTFT against the tokens that were computed, with the line of the fit."""

from __future__ import annotations

from harness.report.palette import HIT, MISS, TEXT
from harness.report.plot import Plot, colours, layer, missing, plot, quantity, tips, upright
from harness.report.prefill import Prefill

TITLE = "TTFT against uncached tokens"


def prefill_plot(name: str, found: Prefill, most_tokens: int, most_ms: float) -> Plot:
    """The axes end at the given values, so that several sides can be compared by eye."""
    if not found.points:
        return missing(name, TITLE, "No TTFT against uncached tokens: no successful request reports what it hit.")
    rows = [{"which": one.which, "tokens": one.uncached_tokens, "ms": round(one.ttft_ms, 3)} for one in found.points]
    across = quantity("tokens", "prompt tokens not from the cache", scale={"domain": [0, most_tokens], "nice": True})
    up = upright("ms", scale={"domain": [0, most_ms], "nice": True}, form=",~r")
    layers = [
        layer(
            {"type": "circle", "size": 22, "opacity": 0.45, "clip": True}, rows, x=across, y=up,
            color=colours("which", {"hit": HIT, "miss": MISS}, "circle"),
            tooltip=tips(which=("", ""), tokens=("uncached tokens", ",d"), ms=("TTFT, ms", ",.1f")),
        )
    ]  # fmt: skip
    if found.fit:
        ends = [
            {"tokens": tokens, "ms": found.fit.base_ms + found.fit.ms_per_1000 * tokens / 1_000}
            for tokens in (0, max(one.uncached_tokens for one in found.points))
        ]
        layers.append(
            layer({"type": "line", "color": TEXT, "strokeWidth": 1.5, "strokeDash": [6, 4], "clip": True}, ends,
                  x=across, y=up)
        )  # fmt: skip
    return plot(name, TITLE, "ms", layers, height=260)
