"""What a rule says of the first difference between two prompts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from harness.lint.kinds import Kind
from harness.lint.segments import Segments


@dataclass(frozen=True, slots=True)
class Step:
    """A difference that was put right: of what kind it is, and both prompts without it."""

    kind: Kind
    earlier: Segments
    later: Segments
    key: Hashable
    """What has to be known to put the same right in other prompts."""
    order: str
    """The rearranged order, for people."""
