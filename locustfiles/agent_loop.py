"""The agent-loop scenario; see docs/scenarios.md. Any other one can be named with --scenario."""

from harness.swarm import SessionUser, install

install(scenario="agent-loop")


class AgentLoopUser(SessionUser):
    """One live session at a time."""
