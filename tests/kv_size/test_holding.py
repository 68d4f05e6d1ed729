"""What holds for every model and type: more tokens, layers or heads never take less, and layers add up."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from harness.kv_size.engine import Engine, StorageType
from harness.kv_size.engines import engines
from harness.kv_size.holding import objection, size
from harness.kv_size.shape import Attention, Latent, Layer, Model, Recurrence, State

SIZES = st.sampled_from([64, 128, 192, 256])
ATTENTION = st.builds(Attention, st.integers(1, 16), SIZES, SIZES, st.none() | st.integers(1, 3000))
LATENT = st.builds(Latent, st.sampled_from([256, 512]), st.just(64), st.sampled_from([0, 128]))
STATE = st.builds(State, st.sampled_from(Recurrence), st.integers(0, 10**5), st.integers(0, 10**6))
LAYERS = st.lists(ATTENTION, min_size=1, max_size=8) | st.lists(LATENT, min_size=1, max_size=4)
WITH_STATES = st.tuples(LAYERS, st.lists(STATE, max_size=4)).map(lambda both: tuple(both[0]) + tuple(both[1]))
TYPES = st.sampled_from([(engine, kept) for engine in engines() for kept in engine.types])
TOKENS = st.integers(1, 10**6)


def model(layers: tuple[Layer, ...]) -> Model:
    return Model("m", layers)


def fits(engine: Engine, kept: StorageType, *layers: tuple[Layer, ...]) -> bool:
    return all(objection(engine, kept, model(some)) is None for some in layers)


@given(TYPES, WITH_STATES, TOKENS, TOKENS)
def test_more_tokens_never_take_less(
    pair: tuple[Engine, StorageType], layers: tuple[Layer, ...], first: int, second: int
) -> None:
    assume(fits(*pair, layers))
    found = size(*pair, model(layers))
    assert found.bytes_at(min(first, second)) <= found.bytes_at(max(first, second))
    assert found.bytes_at(1) == found.per_session + found.per_token
    grown = found.bytes_at(10**7 + 1) - found.bytes_at(10**7)
    assert grown == found.per_token_past_windows <= found.per_token


@given(TYPES, WITH_STATES, WITH_STATES, TOKENS)
def test_layers_add_up(
    pair: tuple[Engine, StorageType], first: tuple[Layer, ...], second: tuple[Layer, ...], tokens: int
) -> None:
    engine, kept = pair[0], replace(pair[1], plain_ends=0)  # what is kept apart at the ends depends on where these are
    assume(fits(engine, kept, first, second))
    parts = [size(engine, kept, model(layers)).bytes_at(tokens) for layers in (first, second)]
    assert size(engine, kept, model(first + second)).bytes_at(tokens) == sum(parts)


@given(TYPES, WITH_STATES, TOKENS)
def test_windows_only_save(pair: tuple[Engine, StorageType], layers: tuple[Layer, ...], tokens: int) -> None:
    whole = model(layers)
    assume(fits(*pair, layers))
    kept = whole.with_windows_kept()
    assert not kept.windows
    assert size(*pair, whole).bytes_at(tokens) <= size(*pair, kept).bytes_at(tokens)
    shortest = min(whole.windows, default=tokens)
    assert size(*pair, whole).bytes_at(min(tokens, shortest)) == size(*pair, kept).bytes_at(min(tokens, shortest))


@given(TYPES, WITH_STATES)
def test_the_16_bit_type_is_the_yardstick(pair: tuple[Engine, StorageType], layers: tuple[Layer, ...]) -> None:
    """No type is larger than its engine's largest, and bytes a number are those of the whole token."""
    engine, kept = pair
    assume(fits(engine, kept, layers))
    found = size(engine, kept, model(layers))
    largest = max(size(engine, one, model(layers)).per_token for one in engine.types if fits(engine, one, layers))
    assert found.per_token <= largest
    assert found.bytes_per_number * sum(one.numbers for one in found.holdings) == found.per_token
