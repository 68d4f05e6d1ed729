"""What the recorded rows say: latency, token hit rate, agreement with the engine's counters, reports."""

from harness.analysis.run import Run, TargetRun, load
from harness.analysis.summary import Summary, summarise

__all__ = ["Run", "Summary", "TargetRun", "load", "summarise"]
