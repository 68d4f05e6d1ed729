"""The colours of the report, as on the live page: one meaning, one colour, in every plot."""

from __future__ import annotations

import json
from typing import Any

Spec = dict[str, Any]

HIT, MISS, EXPECTED = "var(--hit)", "var(--miss)", "var(--expected)"
OTHER, TIME = "var(--other)", "var(--time)"
"""OTHER: neither of these; TIME: a duration of all requests."""
TEXT, SOFT, EDGE, CARD, BAD = "var(--text)", "var(--soft)", "var(--edge)", "var(--card)", "var(--bad)"

LIGHT = {
    "hit": "#0067a8", "miss": "#c2500a", "expected": "#00785a", "other": "#6e7781", "time": "#6b4aa0",
    "text": "#1f2328", "soft": "#59636e", "edge": "#d8dee4", "card": "#ffffff", "page": "#f6f8fa", "bad": "#b42318",
}  # fmt: skip
DARK = {
    "hit": "#5cb8f5", "miss": "#ffa657", "expected": "#4ad3a0", "other": "#a5b0bb", "time": "#c3a6f0",
    "text": "#e6edf3", "soft": "#9aa7b4", "edge": "#3a424c", "card": "#1e1e1e", "page": "#121212", "bad": "#ff8a80",
}  # fmt: skip

FONT = "Roboto, Helvetica, Arial, system-ui, sans-serif"


def variables(colours: dict[str, str]) -> str:
    """As CSS."""
    return "; ".join(f"--{name}: {colour}" for name, colour in colours.items())


def painted(spec: Spec, colours: dict[str, str]) -> Spec:
    """The same plot with colours in place of the names of CSS variables, for files."""
    text = json.dumps(spec)
    for name, colour in colours.items():
        text = text.replace(f"var(--{name})", colour)
    painted: Spec = json.loads(text)
    return painted
