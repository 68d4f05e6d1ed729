"""URLs of targets and of what stands beside them."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit, urlunsplit


def http_url(text: str) -> SplitResult:
    """Raises ValueError, without repeating what may be a password."""
    parts = urlsplit(text.strip())
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL must not hold a user name or password: use api_key_env or headers")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError(f"expected a URL such as http://host:port/v1, found {text!r}")
    return parts


def base_url(text: str, path: str) -> str:
    """The URL without a slash at its end; `path` is added to one without a path. Raises ValueError as `http_url`."""
    parts = http_url(text)
    if parts.query or parts.fragment:
        raise ValueError(f"expected a base URL, without ? and #, found {text!r}")
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") or path))


def server_root(url: str) -> str:
    """The URL without a last path segment that is a version, such as /v1."""
    return re.sub(r"/v\d+$", "", url)
