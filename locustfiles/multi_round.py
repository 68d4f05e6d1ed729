"""The multi-round scenario; see docs/scenarios.md. Any other one can be named with --scenario."""

from harness.swarm import SessionUser, install

install(scenario="multi-round")


class MultiRoundUser(SessionUser):
    """One live session at a time."""
