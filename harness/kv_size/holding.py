"""What the layers of a model take in a type of an engine's cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from harness.kv_size.engine import Engine, Latents, StorageType
from harness.kv_size.format import PLAIN, Format
from harness.kv_size.shape import Attention, Latent, Model, State

LATENT_BLOCK = Format(8, block=128, block_bytes=4)
"""The latent part under `Latents.SCALED`."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What one layer takes, in bytes."""

    per_token: int
    numbers: int
    """Numbers of a token that are kept, scales not counted."""
    per_session: int = 0
    window: int | None = None
    """Tokens up to which it grows; None: without end."""


@dataclass(frozen=True, slots=True)
class Size:
    """What a whole model takes: the sum over its layers."""

    holdings: tuple[Holding, ...]

    @property
    def per_token(self) -> int:
        """Bytes of a token that every layer holds: what a short session grows by."""
        return sum(one.per_token for one in self.holdings)

    @property
    def bytes_per_number(self) -> Fraction:
        """Of what is kept of a token, scales included."""
        return Fraction(self.per_token, sum(one.numbers for one in self.holdings))

    @property
    def per_token_past_windows(self) -> int:
        """Bytes that a session grows by for a token when all its windows are full."""
        return sum(one.per_token for one in self.holdings if one.window is None)

    @property
    def per_session(self) -> int:
        """Bytes of the states of recurrent layers."""
        return sum(one.per_session for one in self.holdings)

    def bytes_at(self, tokens: int) -> int:
        """Bytes of a session of so many tokens."""
        return sum(
            one.per_session + one.per_token * (tokens if one.window is None else min(tokens, one.window))
            for one in self.holdings
        )


def size(engine: Engine, kept: StorageType, model: Model) -> Size:
    """In the given type, to which there is no `objection`.

    A token takes kv_heads * (bytes of a key + bytes of a value) in an attention layer, one latent vector in an MLA
    layer, and nothing in a recurrent layer, whose state is there once for each session.
    """
    ends = 0 if model.is_hybrid else kept.plain_ends
    attending = [number for number, layer in enumerate(model.layers) if not isinstance(layer, State)]
    plain = set(attending[:ends]) | set(attending[len(attending) - ends :]) if ends else set()
    sixteen = replace(kept, keys=PLAIN, values=PLAIN)
    found = []
    for number, layer in enumerate(model.layers):
        packed = sixteen if number in plain else kept
        if isinstance(layer, State):
            found.append(Holding(0, 0, per_session=_state_bytes(engine, layer)))
            continue
        as_kept = _as_kept(engine, layer)
        if isinstance(as_kept, Attention):
            numbers = as_kept.kv_heads * (as_kept.key_size + as_kept.value_size)
            found.append(Holding(_attention_bytes(packed, as_kept), numbers, window=as_kept.window))
        else:
            index = (engine.index_keys or packed.keys).bytes_of(as_kept.index_size)
            numbers = as_kept.rank + as_kept.rope_size + as_kept.index_size
            found.append(Holding(_latent_bytes(packed, as_kept) + index, numbers))
    return Size(tuple(found))


def objection(engine: Engine, kept: StorageType, model: Model) -> str | None:
    """Why the engine cannot keep this model's cache in this type; None: it can."""
    for layer in model.kinds():
        if not isinstance(layer, State):
            for reason in _objections(engine, kept, _as_kept(engine, layer)):
                return reason
    return None


def _as_kept(engine: Engine, layer: Attention | Latent) -> Attention | Latent:
    if isinstance(layer, Latent) and layer.expanded is not None and engine.expands_some_latents:
        return layer.expanded
    return layer


def _objections(engine: Engine, kept: StorageType, layer: Attention | Latent) -> Iterator[str]:
    vectors: list[tuple[str, int, Format]] = []
    if isinstance(layer, Attention):
        if not kept.heads:
            yield "it is made for MLA only"
        if layer.window is not None and not kept.windows:
            yield "it does not hold layers with a sliding window"
        if kept.head_size is not None and {layer.key_size, layer.value_size} != {kept.head_size}:
            yield f"it is made for heads of {kept.head_size} only"
        vectors += [("a key", layer.key_size, kept.keys), ("a value", layer.value_size, kept.values)]
    else:
        way = kept.sparse_latents if layer.index_size else kept.latents
        if way is Latents.REFUSED:
            yield "it does not hold MLA" + (" with index keys" if layer.index_size else "")
        elif way is Latents.SCALED:
            vectors.append(("a latent vector", layer.rank, LATENT_BLOCK))
        elif way is Latents.APART:
            vectors += [("a latent vector", layer.rank, kept.keys), ("its position", layer.rope_size, kept.values)]
        else:
            if kept.keys != kept.values:
                yield "MLA keeps no values, so both types have to be the same"
            vectors.append(("a latent vector", layer.rank + layer.rope_size, kept.keys))
        vectors.append(("an index key", layer.index_size, engine.index_keys or kept.keys))
    for what, length, packing in vectors:
        reason = packing.objection(length)
        if reason:
            yield f"{what} has {length} numbers, and {reason}"


def _attention_bytes(packed: StorageType, layer: Attention) -> int:
    slot = packed.keys.bytes_of(layer.key_size) + packed.values.bytes_of(layer.value_size)
    return layer.kv_heads * (-(-slot // packed.slot_multiple) * packed.slot_multiple)


def _latent_bytes(packed: StorageType, layer: Latent) -> int:
    way = packed.sparse_latents if layer.index_size else packed.latents
    if way is Latents.JOINED:
        return packed.keys.bytes_of(layer.rank + layer.rope_size)
    if way is Latents.APART:
        return packed.keys.bytes_of(layer.rank) + packed.values.bytes_of(layer.rope_size)
    return LATENT_BLOCK.bytes_of(layer.rank) + PLAIN.bytes_of(layer.rope_size)


def _state_bytes(engine: Engine, layer: State) -> int:
    width = 4 if layer.recurrence in engine.wide_states else PLAIN.bits // 8
    if engine.reads_state_width and layer.told_bytes is not None:
        width = layer.told_bytes
    return engine.convolution_bytes * layer.convolution + width * layer.recurrent
