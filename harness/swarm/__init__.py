"""The Locust side: options, the web form, users, and the handshake between master and workers.

A locustfile calls `install()` once and defines a subclass of `SessionUser`; everything else follows from the options.
"""

from __future__ import annotations

from harness.swarm.install import install
from harness.swarm.user import SessionUser

__all__ = ["SessionUser", "install"]
