"""What the recorded rows say: latency, token hit rate, agreement with the engine's counters, reports."""

from harness.analysis.run import Run, load

__all__ = ["Run", "load"]
