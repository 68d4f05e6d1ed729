"""kvswarm: does the prefix cache work, and what does it buy under load?"""

from __future__ import annotations

__version__ = "0.1.0"
