"""Small recorded runs, as those of the analysis."""

from __future__ import annotations

from tests.analysis.conftest import make_run

__all__ = ["make_run"]
