"""Any scenario, chosen with --scenario or in the form of Locust's page."""

from harness.swarm import SessionUser, install

install(scenario="agent-loop")


class SwarmUser(SessionUser):
    """One live session at a time."""
