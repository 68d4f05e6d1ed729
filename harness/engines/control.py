"""Plain HTTP calls to an engine, outside the measured load: every failure is a TargetError of one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3.exceptions

from harness.engines.reading import read_event
from harness.engines.target import Target
from harness.errors import TargetError

LOOK_UP_TIMEOUT_S = 30.0
"""A server that does not answer a GET for this long is taken as hung; its POSTs may wait behind other requests."""


def open_session(target: Target, url: str) -> requests.Session:
    """A session for `url`, with the target's headers if that is on the target's own server.

    Proxy settings of the environment are not used: the measured requests do not go through a proxy either.
    Raises TargetError if the API key's variable is not set, or if `ca_file` is not there.
    """
    if target.ca_file is not None and not target.ca_file.is_file():
        raise TargetError(f"Target {target.name}: ca_file {target.ca_file} is not there")
    session = requests.Session()
    session.trust_env = False
    session.verify = str(target.ca_file) if target.ca_file and target.tls_verify else target.tls_verify
    if target.owns(url):
        session.headers.update(target.request_headers())
    return session


def reason(problem: requests.RequestException, url: str) -> str:
    """Why an HTTP exchange with `url` failed, in a few words that follow "cannot be reached: "."""
    causes = list(_causes(problem))
    host = urlsplit(url).netloc
    if any(isinstance(cause, urllib3.exceptions.NameResolutionError) for cause in causes):
        return f"the host name in {host} is not known"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return f"nothing listens at {host}; is the server running, is the port right?"
    if isinstance(problem, requests.ConnectTimeout):
        return f"{host} does not accept connections (no answer in time)"
    if isinstance(problem, requests.Timeout):
        return "no answer in time"
    if isinstance(problem, requests.exceptions.SSLError):
        return f"TLS failed ({causes[-1]}); see ca_file and tls_verify in docs/targets.md"
    return str(causes[-1]) or type(causes[-1]).__name__


class Control:
    """Control calls to one target."""

    def __init__(self, target: Target) -> None:
        """Raises TargetError as `open_session` does."""
        self.target = target
        self._session = open_session(target, target.url)

    def get(self, url: str) -> requests.Response:
        """Whatever the server answers, except 401 and 403. Raises TargetError for those and if there is no answer."""
        return self._send("GET", url, None, min(LOOK_UP_TIMEOUT_S, self.target.read_timeout_s))

    def post(self, url: str, body: Mapping[str, Any]) -> requests.Response:
        """As `get`, with a JSON body."""
        return self._send("POST", url, body, self.target.read_timeout_s)

    def get_object(self, url: str) -> dict[str, Any]:
        """The JSON object at `url`. Raises TargetError if something else comes."""
        return json_object(self.get(url))

    def post_for_object(self, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return json_object(self.post(url, body))

    def _send(self, method: str, url: str, body: Mapping[str, Any] | None, timeout_s: float) -> requests.Response:
        try:
            response = self._exchange(method, url, body, timeout_s)
        except requests.RequestException as problem:
            raise TargetError(f"{method} {url} failed: {reason(problem, url)}") from None
        if response.status_code in (401, 403):
            raise TargetError(f"{method} {url} answered {response.status_code}: {self._key_advice(url)}")
        return response

    def _exchange(self, method: str, url: str, body: Mapping[str, Any] | None, timeout_s: float) -> requests.Response:
        # A metrics page may be on another host, which the target's headers and key are not for.
        session = self._session if self.target.owns(url) else open_session(self.target, url)
        timeouts_s = (self.target.connect_timeout_s, timeout_s)
        try:
            return session.request(method, url, json=body, timeout=timeouts_s)
        except requests.ConnectionError as problem:
            if not any(isinstance(cause, urllib3.exceptions.ProtocolError) for cause in _causes(problem)):
                raise
        # The server closed an idle connection at the moment of this request: once more, on a new one.
        return session.request(method, url, json=body, timeout=timeouts_s)

    def _key_advice(self, url: str) -> str:
        if not self.target.owns(url):
            return "the API key goes to the target's own host and port only, so this page must be open to all"
        variable = self.target.api_key_env
        if variable is None:
            return (
                "the server wants an API key; put it in an environment variable and name that as "
                "api_key_env in a target file, see docs/targets.md"
            )
        return f"the server refuses the API key in the environment variable {variable}"


def json_object(response: requests.Response) -> dict[str, Any]:
    """The JSON object in a response of status 200. Raises TargetError, quoting what came, if it is not that."""
    if response.status_code == 200:
        try:
            body = json.loads(response.content)
        except ValueError:  # also what is not UTF-8
            body = None
        if isinstance(body, dict):
            return body
    raise TargetError(f"{response.request.method} {response.url} answered {answer_in_short(response)}")


def answer_in_short(response: requests.Response) -> str:
    """Status, and the engine's own error message if there is one, else the beginning of the body."""
    try:
        body = json.loads(response.content)
    except ValueError:
        body = None
    text = read_event(body).error if isinstance(body, dict) else None
    text = " ".join((text or response.content[:2000].decode("utf-8", "replace")).split())
    shown = f"{text[:197]}..." if len(text) > 200 else text
    return f"{response.status_code} ({shown or 'an empty body'})"


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """The exception and those it wraps, outermost first."""
    cause: BaseException | None = problem
    while cause is not None:
        yield cause
        inner = getattr(cause, "reason", None)
        wrapped = next((value for value in cause.args if isinstance(value, BaseException)), None)
        cause = inner if isinstance(inner, BaseException) else wrapped or cause.__context__
