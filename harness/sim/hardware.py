"""How long a step takes: a model on a machine, by the data sheet and by the shares of it that are reached.

docs/simulator.md has the calculation of each number, and its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

MEMORY_SHARE = 0.9
"""Of a card's memory, for weights and KV cache."""
COMPUTE_SHARE = 0.6
"""Of the peak, reached by matrix products and by attention over long prompts."""
BANDWIDTH_SHARE = 0.8
"""Of the peak, reached by reading weights and KV cache."""
LAUNCH_S = 0.8e-3
"""Of each step, whatever it computes: scheduling and launching that nothing hides."""
SUM_S = 10e-6
"""Of each exchange between cards, however small."""
LINK_SHARE = 0.65
"""Of the link's peak, reached by exchanges."""
_BYTES = 2
"""Of a weight, an activation, a number in the KV cache (bfloat16)."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """Coefficients of a step's duration, in seconds."""

    step_s: float
    """For the step itself."""
    new_token_s: float
    """For each token that is computed."""
    context_token_s: float
    """For each token of KV cache that was there before the step and is read in it."""
    attention_s: float
    """For each pair of a token that is computed and a token that it looks at, itself included."""

    def duration_s(self, new_tokens: int, context_tokens: int, pairs: int) -> float:
        return (
            self.step_s
            + self.new_token_s * new_tokens
            + self.context_token_s * context_tokens
            + self.attention_s * pairs
        )


@dataclass(frozen=True, slots=True)
class Hardware:
    """One model on one machine."""

    cost: StepCost
    kv_bytes_per_token: int
    kv_tokens: int
    """Room for KV cache where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Model:
    """A dense transformer with grouped queries, in bfloat16."""

    parameters: float
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int

    @property
    def kv_bytes_per_token(self) -> int:
        return self.layers * 2 * self.kv_heads * self.head_size * _BYTES

    @property
    def flop_per_token(self) -> float:
        """Of the matrix products: two for each weight, but for those of the two embeddings."""
        return 2 * (self.parameters - 2 * self.vocabulary * self.hidden)

    @property
    def flop_per_pair(self) -> int:
        """Of attention: a product with the key and one with the value, in each head of each layer."""
        return 4 * self.heads * self.head_size * self.layers


@dataclass(frozen=True, slots=True)
class Card:
    """Its data sheet."""

    flop_per_s: float
    """Of dense bfloat16 products that are summed up in 32 bits."""
    bytes_per_s: float
    memory_bytes: float
    link_bytes_per_s: float = 0.0
    """To the other cards, in one direction."""


def hardware(model: Model, card: Card, cards: int = 1) -> Hardware:
    """The model shared out over `cards`, each with its part of every layer (tensor parallel).

    After attention and after the feed-forward part of each layer all cards sum up their activations: a ring of n cards
    moves 2 (n - 1) / n of their bytes.
    """
    flop_per_s = COMPUTE_SHARE * card.flop_per_s * cards
    bytes_per_s = BANDWIDTH_SHARE * card.bytes_per_s * cards
    weights_bytes = _BYTES * model.parameters
    sums_s = sums_per_token_s = 0.0
    if cards > 1:
        sums_s = 2 * model.layers * SUM_S
        moved_bytes = 2 * model.layers * 2 * (cards - 1) / cards * _BYTES * model.hidden
        sums_per_token_s = moved_bytes / (LINK_SHARE * card.link_bytes_per_s)
    cost = StepCost(
        step_s=LAUNCH_S + weights_bytes / bytes_per_s + sums_s,
        new_token_s=model.flop_per_token / flop_per_s + sums_per_token_s,
        context_token_s=model.kv_bytes_per_token / bytes_per_s,
        attention_s=model.flop_per_pair / flop_per_s,
    )
    room_bytes = MEMORY_SHARE * card.memory_bytes * cards - weights_bytes
    return Hardware(cost, model.kv_bytes_per_token, int(room_bytes / model.kv_bytes_per_token) // 1024 * 1024)


_GIB = 2**30
LLAMA_8B = Model(8.03e9, layers=32, hidden=4096, heads=32, kv_heads=8, head_size=128, vocabulary=128256)
LLAMA_70B = Model(70.55e9, layers=80, hidden=8192, heads=64, kv_heads=8, head_size=128, vocabulary=128256)
H100 = Card(989.4e12, 3.35e12, 80 * _GIB)
A100 = Card(312e12, 2.039e12, 80 * _GIB, link_bytes_per_s=300e9)
RTX_4090 = Card(165.2e12, 1.008e12, 24 * _GIB)

PRESETS: Mapping[str, Hardware] = MappingProxyType(
    {
        "h100-8b": hardware(LLAMA_8B, H100),
        "a100-70b-tp4": hardware(LLAMA_70B, A100, cards=4),
        "rtx4090-8b": hardware(LLAMA_8B, RTX_4090),
        # The tiny model on llama.cpp's server with one thread, fitted to its timings by tests/bench/step_time.py.
        "cpu": Hardware(StepCost(6.0e-4, 3.6e-4, 2.1e-6, 3.3e-7), 4096, 16384),
    }
)
