"""Keys of servers: a file names the environment variable, and only the environment has the key."""

from __future__ import annotations

import os
import re

from harness.errors import TargetError


def variable_name(text: str | None) -> str | None:
    """The text again. Raises ValueError if it is no name of an environment variable, without repeating it."""
    if text is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        # What was found is not repeated: it may be the key.
        raise ValueError("expected the name of an environment variable (letters, digits, _), never the key itself")
    return text


def read_key(variable: str | None, who: str) -> str | None:
    """The key in the variable, None without one. Raises TargetError if it is not set; `who` begins the sentence."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise TargetError(
            f"{who} takes its API key from the environment variable {variable}, which is not set: "
            f"export {variable}=... (on each machine that runs kvswarm)"
        )
    return key
