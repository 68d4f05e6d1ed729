"""Targets: whom a run loads, given as a URL, as a YAML file, or as the name of a file in the targets folder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness.errors import TargetError
from harness.yamlfile import load_model, sentence

EngineName = Literal["llama-cpp", "openai"]

TARGETS = Path("scenarios/targets")
"""Where targets that are given by name are looked for."""


class Target(BaseModel):
    """An OpenAI-compatible server, and how it is reached. It never holds the API key itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    """Base URL of the OpenAI API; `/v1` is added to a URL without a path."""
    metrics_url: str | None = Field(default_factory=lambda fields: f"{_server_root(fields['url'])}/metrics")
    """Prometheus page to scrape during the run; None: scrape nothing."""
    engine: EngineName | None = None
    """None: detect it."""
    model: str | None = Field(default=None, min_length=1)
    """None: the first model that the server lists."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the API key; None: send none."""
    headers: dict[str, str] = Field(default={}, repr=False)
    """Further HTTP headers of every request to the server."""
    tls_verify: bool = True
    ca_file: Path | None = None
    """PEM file of the certificate authority to trust; None: those that the `certifi` package lists."""
    connect_timeout_s: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    read_timeout_s: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    """Longest silence of the server in the middle of an answer."""
    name: str = Field(default_factory=lambda fields: urlsplit(fields["url"]).netloc, min_length=1)
    """What reports call it; by default the file's name, or host:port of a URL."""

    @property
    def server_root(self) -> str:
        """The URL that the engine's own paths, such as /metrics, are appended to."""
        return _server_root(self.url)

    def api_key(self) -> str | None:
        """The key out of the environment. Raises TargetError if its variable is not set."""
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise TargetError(
                f"Target {self.name} takes its API key from the environment variable {self.api_key_env}, which is not "
                f"set: export {self.api_key_env}=... (on each machine that runs kvswarm)"
            )
        return key

    def request_headers(self) -> dict[str, str]:
        """Headers of every request, the API key among them. Raises TargetError as `api_key` does."""
        key = self.api_key()
        return {**self.headers, **({"Authorization": f"Bearer {key}"} if key else {})}

    def owns(self, url: str) -> bool:
        """Whether `url` is on the target's own server, so that the target's headers may go there."""
        return urlsplit(url)[:2] == urlsplit(self.url)[:2]

    @field_validator("url")
    @classmethod
    def _openai_base(cls, text: str) -> str:
        parts = _http_url(text)
        if parts.query or parts.fragment:
            raise ValueError(f"expected a base URL, without ? and #, found {text!r}")
        return urlunsplit(parts._replace(path=parts.path.rstrip("/") or "/v1"))

    @field_validator("metrics_url")
    @classmethod
    def _metrics_page(cls, text: str | None) -> str | None:
        if text is None or text.lower() == "none":
            return None
        return urlunsplit(_http_url(text))

    @field_validator("api_key_env")
    @classmethod
    def _variable_name(cls, text: str | None) -> str | None:
        if text is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
            # What was found is not repeated: it may be the key.
            raise ValueError("expected the name of an environment variable (letters, digits, _), never the key itself")
        return text

    @field_validator("headers", mode="before")
    @classmethod
    def _harmless_headers(cls, headers: Any) -> Any:
        if not isinstance(headers, dict):
            return headers
        for name, value in headers.items():
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", str(name)):
                raise ValueError(f"expected names of HTTP headers, found {str(name)!r}")
            if str(name).lower() == "authorization":
                raise ValueError(
                    "Authorization has no place here: put the key in an environment variable, named by api_key_env"
                )
            if not isinstance(value, str) or not value.isprintable() or not value.isascii():
                raise ValueError(f"expected a line of plain ASCII text, in quotes, as the value of {name}")
        return headers


def resolve_target(text: str, folder: Path = TARGETS) -> Target:
    """The target that `text` means: a URL, the path of a YAML file, or the name of a file in `folder`.

    Raises TargetError if it means none, or if the file cannot be used.
    """
    text = text.strip()
    if re.match(r"https?://", text, re.IGNORECASE):
        return _from_url(text)
    path = Path(text)
    if path.suffix not in (".yaml", ".yml"):
        path = folder / f"{text}.yaml"
        if not path.is_file():
            raise TargetError(_unknown(text, folder))
    target = load_model(path, Target, TargetError)
    return target if "name" in target.model_fields_set else target.model_copy(update={"name": path.stem})


def _from_url(text: str) -> Target:
    try:
        return Target(url=text)
    except ValidationError as invalid:
        shown = re.sub(r"//[^/]*@", "//...@", text)
        raise TargetError(f"Target {shown}: {sentence(invalid.errors()[0])}") from None


def _unknown(text: str, folder: Path) -> str:
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    known = f"{folder} has {', '.join(names)}" if names else f"there is no target file in {folder}"
    if re.fullmatch(r"[\w.-]+:\d+(/.*)?", text):
        return f"No target {text!r}: a URL begins with http:// or https://, as in http://{text}"
    return f"No target {text!r}: give a URL (http://...), a YAML file or a name; {known}"


def _http_url(text: str) -> SplitResult:
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


def _server_root(url: str) -> str:
    """The URL without a last path segment that is a version, such as /v1."""
    return re.sub(r"/v\d+$", "", url)
