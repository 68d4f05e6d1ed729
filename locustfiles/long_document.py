"""The long-document scenario; see docs/scenarios.md. Any other one can be named with --scenario."""

from harness.swarm import SessionUser, install

install(scenario="long-document")


class LongDocumentUser(SessionUser):
    """One live session at a time."""
