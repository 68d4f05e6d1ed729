"""Small sets of prompts that have a fault each, or two, written down before there was anything to find them."""

from __future__ import annotations

from tests.lint.labelled_additions import ADDITIONS
from tests.lint.labelled_order import ORDER

FAULTS = ADDITIONS | ORDER
