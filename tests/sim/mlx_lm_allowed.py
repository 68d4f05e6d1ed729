"""In what simulated answers may differ from those of mlx-lm's real server, and why."""

from __future__ import annotations

from tests.sim.exchange import Allowed

SAID = "the model's own words"
UVICORN = "it speaks HTTP/1.1, so every body has a length or comes in chunks, and that the connection closes is said"
ALLOWED = (
    Allowed(r"body(\[\])?\.created|headers\.date", "a time of its own"),
    Allowed(r"body(\[\])?\.id", "drawn anew for each answer"),
    Allowed(r"body(\[\])?\.system_fingerprint", "it says that it is simulated"),
    Allowed(r"body(\[\])?\.choices\[\]\.(delta\.content|message\.content|text)", SAID),
    Allowed(r"headers\.(content-length|transfer-encoding|connection)", UVICORN, what=("extra",)),
    Allowed(r"headers\.content-length", "that of a body with other words"),
    Allowed(r"body(\[\])?\.model|body\.data\[\]\.(id|created)", "another model, since another time"),
)
