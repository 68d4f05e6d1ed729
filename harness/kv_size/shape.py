"""What a model keeps of a sequence, layer by layer, in numbers and not yet in bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum


@dataclass(frozen=True, slots=True)
class Attention:
    """A key and a value for each KV head (MHA, GQA, MQA), of every token or of the last `window` ones."""

    kv_heads: int
    key_size: int
    value_size: int
    window: int | None = None
    """Tokens; None: no window."""

    def __str__(self) -> str:
        sizes = f"{self.key_size}"
        if self.value_size != self.key_size:
            sizes = f"{self.key_size} (keys) and {self.value_size} (values)"
        kind = "full attention" if self.window is None else f"attention to the last {self.window:,} tokens"
        return f"{kind}, {self.kv_heads} KV head{'s'[: self.kv_heads > 1]} of {sizes}"


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention (MLA): `rank` numbers for all heads together, and `rope_size` for the position."""

    rank: int
    rope_size: int
    index_size: int = 0
    """Size of the key by which sparse attention finds its tokens; 0: none."""
    expanded: Attention | None = None
    """What an engine keeps that does not know to keep the latent vector of this kind of model; None: all of them do."""

    def __str__(self) -> str:
        index = f", and an index key of {self.index_size}" if self.index_size else ""
        return f"latent attention (MLA), {self.rank} + {self.rope_size} numbers a token{index}"


class Recurrence(Enum):
    MAMBA = "Mamba"
    DELTA = "gated delta rule"
    KIMI_DELTA = "Kimi delta attention"
    CONVOLUTION = "short convolution"


@dataclass(frozen=True, slots=True)
class State:
    """A recurrent layer: a state that is as large for a long sequence as for a short one."""

    recurrence: Recurrence
    convolution: int
    """Numbers of the last inputs that its convolution looks at."""
    recurrent: int
    """Numbers of the state proper."""
    told_bytes: int | None = None
    """Bytes of a number of the state proper, if the model's file tells."""

    def __str__(self) -> str:
        return f"{self.recurrence.value}, a state of {self.convolution + self.recurrent:,} numbers a session"


Layer = Attention | Latent | State


@dataclass(frozen=True, slots=True)
class Model:
    """Layers in order; one that has both attention and a state counts as two, one that keeps nothing is left out."""

    name: str
    layers: tuple[Layer, ...]
    context_tokens: int | None = None
    """The longest sequence that it is made for; None: not known."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures should know of how the layers were found."""

    @property
    def is_hybrid(self) -> bool:
        return any(isinstance(layer, State) for layer in self.layers)

    @property
    def windows(self) -> frozenset[int]:
        """Lengths of its sliding windows, in tokens."""
        found = (layer.window for layer in self.layers if isinstance(layer, Attention))
        return frozenset(window for window in found if window is not None)

    def with_windows_kept(self) -> Model:
        """The same, for an engine that keeps what lies behind a window as well."""
        kept = (replace(layer, window=None) if isinstance(layer, Attention) else layer for layer in self.layers)
        return replace(self, layers=tuple(kept))

    def kinds(self) -> dict[Layer, int]:
        """How many layers there are of each kind, in order of appearance."""
        return dict(Counter(self.layers))
