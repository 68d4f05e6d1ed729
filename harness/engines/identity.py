"""What an engine tells of itself, and what its user knows beyond that."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from harness.engines.base import Identity
from harness.errors import TargetError

_Text = Annotated[str, Field(min_length=1)]
_Count = Annotated[int, Field(gt=0)]


class IdentityByHand(BaseModel):
    """What the engine does not tell of itself; fields as in `harness.engines.base.Identity`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: _Text | None = None
    build: _Text | None = None
    model_path: _Text | None = None
    context_tokens: _Count | None = None
    capacity_tokens: _Count | None = None
    granularity_tokens: _Count | None = None
    slots: _Count | None = None
    prefix_caching: bool | None = None
    kv_dtype: _Text | None = None
    template_fingerprint: _Text | None = None
    tokenizer_fingerprint: _Text | None = None
    adapter: _Text | None = None


VAGUE = "auto"
"""An engine that says so leaves the type to the model: a type given by hand says which one that is."""


def complete(identity: Identity, by_hand: IdentityByHand) -> Identity:
    """`identity` with what was given by hand for the fields that the engine does not tell.

    Raises TargetError if the engine tells another value than the one by hand.
    """
    given = by_hand.model_dump(exclude_none=True)
    added = {}
    for name, value in given.items():
        told = getattr(identity, name)
        if told is None or told == VAGUE:
            added[name] = value
        elif told != value:
            raise TargetError(
                f"identity.{name} in the target file is {value}, but {identity.engine} tells {told}: "
                "remove the key, or load the server that it describes"
            )
    unknown = {name: reason for name, reason in identity.unknown.items() if name not in added}
    return replace(identity, **added, unknown=unknown, by_hand=tuple(added))


NO_BUILD = "its version names no commit, as that of a release"


def build_of(version: str | None) -> str | None:
    """The part of a Python version after its +, such as g4ba787ec9; None if it has none."""
    return (version or "").partition("+")[2] or None


def explained(identity: Identity, reason: str) -> Identity:
    """`identity` with `reason` for each field that is not told and has no reason of its own yet.

    Without an adapter there is none, which needs no reason.
    """
    untold = [item.name for item in fields(identity) if getattr(identity, item.name) is None and item.name != "adapter"]
    return replace(identity, unknown={**dict.fromkeys(untold, reason), **identity.unknown})
