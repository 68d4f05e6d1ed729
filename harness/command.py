"""How a person calls this installation's `kvswarm` from where they stand, for sentences that say what to type next."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def kvswarm() -> str:
    """`kvswarm` if the shell finds it, else its path: relative to the current directory where it lies below that."""
    if shutil.which("kvswarm"):
        return "kvswarm"
    path = Path(sys.executable).parent / "kvswarm"
    if not path.is_file():
        return "kvswarm"
    shown = os.path.relpath(path)
    return str(path) if shown.startswith("..") else shown
