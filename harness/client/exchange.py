"""What is known of one request and its response, whichever way it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from harness.client.framing import Response
from harness.client.stamps import Clock

End = Literal["complete", "closed", "broken", "malformed", "timeout", "cancelled", "unconnected"]
"""How an exchange ended.

complete: the response is complete, as far as its framing can tell; closed: the server closed the connection before
that; broken: it was reset, or TLS failed; malformed: what came is no HTTP response; timeout: nothing came for too long;
cancelled: we gave up; unconnected: there was no connection, and nothing was sent.
"""


@dataclass(slots=True)
class Exchange:
    """Times are ns since the epoch. Until something else happens, an exchange counts as cancelled."""

    response: Response = field(default_factory=Response)
    stamps: list[int] = field(default_factory=list)
    """Arrival of each read of the response."""
    clock: Clock = "user"
    clock_stepped: bool = False
    """That clock was set during the exchange: no two stamps may be compared."""
    ended: End = "cancelled"
    error: str | None = None
    """What the end was about, where it was not a good one."""
    connect_ms: float | None = None
    """What opening the connection took, TLS included; None if it was open already."""
    t_send: int | None = None
    """Just before the first byte was written; None if none was."""
    t_close: int | None = None
    """When this process saw that the server had closed the connection."""
