"""A Prometheus server that scrapes a target already."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness.engines.address import base_url
from harness.engines.keys import variable_name


class Prometheus(BaseModel):
    """Its samples are used, and the target's pages left alone. It never holds the key itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    """Base URL, the part before /api/v1."""
    selector: dict[str, str] = Field(min_length=1)
    """Labels by which the target's series are told from others, such as {"job": "vllm"}."""
    api_key_env: str | None = None
    """Name of the environment variable that holds its bearer token; None: send none."""
    timeout_s: float = Field(default=10.0, gt=0, allow_inf_nan=False)

    @field_validator("url")
    @classmethod
    def _base(cls, text: str) -> str:
        url = base_url(text, "")
        if re.search(r"/api/v\d+(/|$)", url):
            raise ValueError(f"expected the URL before /api/v1, found {text!r}")
        return url

    @field_validator("selector")
    @classmethod
    def _labels(cls, selector: dict[str, str]) -> dict[str, str]:
        for name, value in selector.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name.startswith("__"):
                raise ValueError(f"expected names of labels (letters, digits, _; no __ in front), found {name!r}")
            if not value or not value.isprintable():
                raise ValueError(f"expected the value that label {name} has, found {value!r}")
        return selector

    @field_validator("api_key_env")
    @classmethod
    def _variable(cls, text: str | None) -> str | None:
        return variable_name(text)
