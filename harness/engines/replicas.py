"""Several servers behind one URL, each with a cache of its own."""

from __future__ import annotations

from dataclasses import replace

from harness.engines.base import ResetOutcome
from harness.engines.target import Target


def replica_details(target: Target) -> dict[str, str]:
    """For `Identity.details`: whose capacity it is, where there are several."""
    replicas = len(target.metrics_urls)
    return {"replicas": f"{replicas}; all that is told here, the capacity too, is that of one"} if replicas > 1 else {}


def over_replicas(target: Target, outcome: ResetOutcome) -> ResetOutcome:
    """What a reset did to all replicas: what stands before them passes a call on to one."""
    replicas = len(target.metrics_urls)
    if replicas <= 1 or not outcome.complete:
        return outcome
    message = f"{outcome.message}, in one of {replicas} replicas only, as far as kvswarm can tell"
    return replace(outcome, complete=False, message=message)
