"""One target through a leg of a run."""

from __future__ import annotations

from harness.record.manifest import StartUpCheck
from harness.swarm.cold_start import ColdStart
from harness.swarm.plan import LanePlan
from harness.swarm.prepare import Lane, Preparation
from harness.swarm.server_metrics import ServerMetrics


class LaneState:
    """What the master knows of it, and what its workers need to."""

    def __init__(self, made: Preparation, lane: Lane, folder: str) -> None:
        self.lane = lane
        self.number = made.lanes.index(lane)
        """Within the run."""
        self.metrics = ServerMetrics(made.run_id, self.number, lane, folder)
        self.cold_start = ColdStart("", None, "")
        self.check: StartUpCheck | None = None

    def plan(self) -> LanePlan:
        lane = self.lane
        return LanePlan(
            number=self.number,
            target=lane.target.model_dump(mode="json"),
            engine=lane.identity.engine,
            model=lane.identity.model,
            lexicon=lane.lexicon.to_json(),
            nonce=self.cold_start.nonce,
            cache_salt=self.cold_start.cache_salt,
            slots=lane.slots,
        )
