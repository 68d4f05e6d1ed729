"""Targets: whom a run loads, given as a URL, as a YAML file, or as the name of a file in the targets folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from harness.engines.address import base_url, http_url, server_root
from harness.engines.identity import IdentityByHand as IdentityByHand
from harness.engines.keys import read_key, variable_name
from harness.engines.prometheus import Prometheus as Prometheus
from harness.errors import TargetError
from harness.yamlfile import load_model, sentence

EngineName = Literal["vllm", "sglang", "llama-cpp", "mlx-lm", "openai"]

TARGETS = Path("scenarios/targets")
"""Where targets that are given by name are looked for."""
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class Target(BaseModel):
    """An OpenAI-compatible server, and how it is reached. It never holds the API key itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    """Base URL of the OpenAI API; `/v1` is added to a URL without a path."""
    metrics_urls: tuple[str, ...] = Field(default_factory=lambda fields: (f"{server_root(fields['url'])}/metrics",))
    """Prometheus pages to scrape during the run, one for each replica behind `url`; empty: scrape nothing."""
    prometheus: Prometheus | None = None
    engine: EngineName | None = None
    """None: detect it."""
    model: str | None = Field(default=None, min_length=1)
    """None: the first model that the server lists."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the API key; None: send none."""
    identity: IdentityByHand = IdentityByHand()
    replica_header: str | None = Field(default=None, min_length=1)
    """Name of the response header in which whatever stands before several replicas tells which one answered."""
    pin_slots: bool = False
    """llama.cpp: each user keeps to one slot, its number modulo the number of slots."""
    eos_token_ids: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """Tokens that end an answer; where an engine has no ignore_eos (mlx-lm), these are banned to force its length."""
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
        return server_root(self.url)

    def api_key(self) -> str | None:
        """The key out of the environment. Raises TargetError if its variable is not set."""
        return read_key(self.api_key_env, f"Target {self.name}")

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
        return base_url(text, "/v1")

    @field_validator("metrics_urls", mode="before")
    @classmethod
    def _one_or_many(cls, given: Any) -> Any:
        if given is None or (isinstance(given, str) and given.lower() == "none"):
            return ()
        return (given,) if isinstance(given, str) else given

    @field_validator("metrics_urls")
    @classmethod
    def _metrics_pages(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        pages = tuple(urlunsplit(http_url(url)) for url in urls)
        if len(set(pages)) < len(pages):
            raise ValueError("expected one page for each replica, found a page twice")
        return pages

    @field_validator("api_key_env")
    @classmethod
    def _variable_name(cls, text: str | None) -> str | None:
        return variable_name(text)

    @field_validator("replica_header")
    @classmethod
    def _header_name(cls, text: str | None) -> str | None:
        if text is not None and _HEADER.fullmatch(text) is None:
            raise ValueError(f"expected the name of an HTTP header, found {text!r}")
        return text

    @field_validator("pin_slots")
    @classmethod
    def _has_slots(cls, pin: bool, info: ValidationInfo) -> bool:
        engine = info.data.get("engine")
        if pin and engine not in (None, "llama-cpp"):
            raise ValueError(f"only llama-cpp has slots that a request can choose; the engine here is {engine}")
        return pin

    @field_validator("headers", mode="before")
    @classmethod
    def _harmless_headers(cls, headers: Any) -> Any:
        if not isinstance(headers, dict):
            return headers
        for name, value in headers.items():
            if _HEADER.fullmatch(str(name)) is None:
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


def resolve_targets(text: str, folder: Path = TARGETS) -> tuple[Target, ...]:
    """The targets that a comma-separated list means, each as `resolve_target` takes it, in their order.

    Raises TargetError if there is none, if one cannot be used, or if two have the same name.
    """
    targets = tuple(resolve_target(part, folder) for part in text.split(",") if part.strip())
    if not targets:
        raise TargetError("No target: give a URL (http://...), a YAML file or a name")
    names = [target.name for target in targets]
    for name in names:
        if names.count(name) > 1:
            raise TargetError(
                f"{names.count(name)} targets are called {name!r}, and results are kept by name: "
                "give each a `name` of its own in a target file"
            )
    return targets


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
