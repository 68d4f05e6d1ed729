"""Asking an engine to empty its cache until it does."""

from __future__ import annotations

import time
from collections.abc import Callable

import requests

PATIENCE_S = 10.0
"""How long a refusal is met with another attempt: engines refuse while requests run, and a little after the last."""
PAUSE_S = 0.5


def insist(ask: Callable[[], requests.Response], is_refused: Callable[[requests.Response], bool]) -> requests.Response:
    """The first answer that is no refusal, or the last one within `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        response = ask()
        if not is_refused(response) or time.monotonic() + PAUSE_S > deadline:
            return response
        time.sleep(PAUSE_S)
