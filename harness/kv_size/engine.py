"""What there is to know of an engine and of a type of its cache."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from harness.kv_size.format import PLAIN, Format
from harness.kv_size.shape import Recurrence


class Latents(Enum):
    """What a type makes of the vector of an MLA layer and the part of it that holds the position."""

    REFUSED = 0
    JOINED = 1
    """One vector, in the format of keys."""
    APART = 2
    """Two vectors, in the formats of keys and of values."""
    SCALED = 3
    """fp8 with a float32 scale for each 128 numbers, and the part with the position in 16 bits."""


@dataclass(frozen=True, slots=True)
class StorageType:
    """A cache type of an engine."""

    name: str
    """As the engine's flag takes it."""
    keys: Format
    values: Format
    slot_multiple: int = 1
    """Key and value of a token and head are padded to a multiple of these bytes."""
    latents: Latents = Latents.REFUSED
    sparse_latents: Latents = Latents.REFUSED
    """The same for MLA with index keys."""
    windows: bool = True
    """Whether layers with a sliding window can be kept in it."""
    heads: bool = True
    """Whether it holds keys and values of heads, and not latent vectors alone."""
    head_size: int | None = None
    """The only size of keys and values that it is made for; None: any."""
    plain_ends: int = 0
    """Attention layers at either end that stay in 16 bits in a model without recurrent layers."""

    @property
    def changes_outputs(self) -> bool:
        """Whether it keeps less than what the model computes with."""
        return min(self.keys.bits, self.values.bits) < PLAIN.bits


@dataclass(frozen=True, slots=True)
class Engine:
    name: str
    title: str
    flag: str
    """What chooses the type."""
    types: tuple[StorageType, ...]
    index_keys: Format | None = None
    """Format of sparse attention's index keys; None: that of keys."""
    expands_some_latents: bool = False
    """Whether it keeps keys and values of every head for some kinds of model with MLA (`Latent.expanded`)."""
    convolution_bytes: int = 2
    """Of a number that a recurrent layer's convolution looks back on."""
    wide_states: frozenset[Recurrence] = frozenset()
    """Recurrent layers whose state proper it keeps in float32, and not in 16 bits."""
    reads_state_width: bool = False
    """Whether it keeps the state as the model's file says (`State.told_bytes`), if it does."""
