"""How many tokens and sessions fit, which types are chosen, and what is said of them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.kv_size.answer import GIB, REMINDER, Answer, answer, as_json, chosen
from harness.kv_size.engines import engines
from harness.kv_size.question import NO_FILES, Card, Question, model_at, model_of
from harness.kv_size.shape import Attention, Latent, Model, Recurrence, State
from harness.kv_size.weights import Weights
from tests.kv_size.small_models import write_gguf
from tests.kv_size.test_gguf import BASE

QWEN3_8B = Model("Qwen3-8B", (Attention(8, 128, 128),) * 36, 40960)
WEIGHTS = Weights(16_400_000_000, "given")
CARD = Card("24GiB", 24 * 2**30, Fraction(9, 10))


def asked(
    model: Model = QWEN3_8B,
    *,
    tokens: int = 32768,
    weights: Weights = WEIGHTS,
    card: Card | None = CARD,
    engine: str = "",
    types: str = "",
) -> Answer:
    return answer(Question(model, weights, tokens, card), chosen(engines(), engine, types, ""))


def test_tokens_of_a_gib_and_sessions_of_a_card() -> None:
    found = asked(engine="vllm", types="bfloat16")
    (row,) = found.rows
    assert row.session_bytes == 4_831_838_208
    assert row.tokens_per_gib == 7_281  # 2^30 / 147,456 = 7,281.8
    assert found.room_bytes == 23_192_823_398 - 16_400_000_000  # 9/10 of 25,769,803,776, rounded down
    assert row.sessions == 1
    assert asked(engine="vllm", types="fp8").rows[0].sessions == 2
    assert asked(engine="vllm", types="bfloat16", tokens=4096).rows[0].sessions == 11  # 6.79 / 0.604


def test_sessions_are_not_told_without_the_weights_or_a_card() -> None:
    for found in (asked(weights=NO_FILES), asked(card=None)):
        assert found.room_bytes is None
        assert {row.sessions for row in found.rows} == {None}


def test_weights_that_do_not_fit_leave_no_room() -> None:
    found = asked(weights=Weights(30 * 10**9, "given"))
    assert found.room_bytes is not None
    assert found.room_bytes < 0
    assert {row.sessions for row in found.rows} == {0}


def test_tokens_of_a_gib_count_windows_and_states() -> None:
    model = Model("m", (Attention(1, 64, 64), Attention(1, 64, 64, window=1000), State(Recurrence.MAMBA, 0, 2500)))
    (row,) = asked(model, tokens=4000, engine="vllm", types="bfloat16").rows
    assert row.session_bytes == 256 * (4000 + 1000) + 5000
    assert row.tokens_per_gib == 4000 * GIB // 1_285_000


def test_types_of_equal_size_share_a_row() -> None:
    found = asked(engine="llama-cpp")
    assert [row.names for row in found.rows][1] == ("f16", "bf16")
    assert [row.names for row in found.rows][-1] == ("q4_0", "iq4_nl")


def test_what_does_not_fit_is_left_out_with_its_reason() -> None:
    left_out = {(one.engine.name, one.name): one.reason for one in asked().left_out}
    assert left_out["vllm", "octave_k3v4"] == "it is made for heads of 256 only"
    assert all(row.names for row in asked().rows)


def test_nothing_that_fits_is_an_error() -> None:
    odd = Model("m", (Attention(1, 80, 80),))
    with pytest.raises(InputError, match=r"llama\.cpp cannot keep this model's cache in q8_0: a key has 80 numbers"):
        asked(odd, types="q8_0")


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 200), st.integers(1, 200))
def test_longer_sessions_or_smaller_cards_never_fit_more_often(short: int, long: int, small: int, large: int) -> None:
    def sessions(tokens: int, gigabytes: int) -> int:
        card = Card("c", gigabytes * 10**9, Fraction(1))
        found = asked(tokens=tokens, card=card, engine="vllm", types="bfloat16").rows[0].sessions
        assert found is not None
        assert found * 147_456 * tokens <= max(0, gigabytes * 10**9 - 16_400_000_000) < (found + 1) * 147_456 * tokens
        return found

    assert sessions(max(short, long), max(small, large)) <= sessions(min(short, long), max(small, large))
    assert sessions(short, min(small, large)) <= sessions(short, max(small, large))


@pytest.mark.parametrize(
    ("engine", "types", "values", "words"),
    [
        ("vlm", "", "", 'no engine "vlm"; did you mean vllm?'),
        ("", "q8", "", 'no cache type "q8"; did you mean q8_0?'),
        ("vllm", "q8_0", "", "--engine vllm has no cache type q8_0: llama-cpp has it"),
        ("", "", "q4_0", "--type-v goes with one --type of llama-cpp"),
        ("", "fp8", "q4_0", "--type-v goes with one --type of llama-cpp"),
        ("", "q8_0", "q4", 'no cache type "q4" of llama-cpp; did you mean q4_'),
    ],
)
def test_names_that_there_are_not(engine: str, types: str, values: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        chosen(engines(), engine, types, values)
    assert words in str(caught.value)


def test_choosing() -> None:
    assert [one.name for one in chosen(engines(), "", "", "")] == ["vllm", "sglang", "llama-cpp", "mlx-lm"]
    assert [one.name for one in chosen(engines(), ",", " ,", "")] == ["vllm", "sglang", "llama-cpp", "mlx-lm"]
    assert [one.name for one in chosen(engines(), "vllm,vllm", "", "")] == ["vllm"]
    assert [one.name for one in chosen(engines(), "llama-cpp,vllm", "fp8, q8_0", "")] == ["llama-cpp", "vllm"]
    (engine,) = chosen(engines(), "", "q8_0", "q4_0")
    assert [one.name for one in engine.types] == ["q8_0 / q4_0"]


def test_what_is_said_of_the_figures() -> None:
    assert asked().notes[-1] == REMINDER
    assert not any("window" in note for note in asked().notes)
    windowed = Model("m", (Attention(1, 64, 64, window=9),), notes=("A note.",))
    assert asked(windowed).notes[0] == "A note."
    assert any("--keep-windows" in note for note in asked(windowed).notes)
    assert any("40,960 tokens at most" in note for note in asked(tokens=50_000).notes)
    assert any(
        "recurrent state" in note
        for note in asked(Model("m", (Attention(1, 64, 64), State(Recurrence.MAMBA, 1, 1)))).notes
    )


def test_json_has_every_number() -> None:
    value = json.loads(json.dumps(as_json(asked(Model("m", (Latent(512, 64), Attention(1, 128, 128))), card=None))))
    assert value["layers"][0] == {
        "kind": "latent",
        "count": 1,
        "rank": 512,
        "rope_size": 64,
        "index_size": 0,
        "expanded": None,
    }
    assert value["card"] is value["room_bytes"] is value["context_tokens"] is None
    first = value["types"][0]
    assert first["engine"] == "vllm"
    assert first["names"] == ["bfloat16", "float16"]
    assert first["bytes_per_token"] == 1152 + 512
    assert first["bytes_per_number"] == 2.0
    assert first["sessions"] is None
    assert {one["name"] for one in value["left_out"]} >= {"nvfp4", "fp8_ds_mla"}
    card = as_json(asked())["card"]
    assert card == {"name": "24GiB", "memory_bytes": 24 * 2**30, "usable": 0.9}


def test_a_model_of_numbers() -> None:
    def numbers(**given: int) -> dict[str, int | None]:
        return {f"--{name.replace('_', '-')}": value for name, value in given.items()}

    assert model_of(numbers(layers=2, kv_heads=8, head_dim=128)).kinds() == {Attention(8, 128, 128): 2}
    both = model_of(numbers(layers=3, kv_heads=8, head_dim=192, value_dim=128, window=9, window_layers=2))
    assert both.kinds() == {Attention(8, 192, 128): 1, Attention(8, 192, 128, 9): 2}
    assert model_of(numbers(layers=2, kv_heads=8, head_dim=128, window=9)).windows == {9}
    assert model_of(numbers(layers=61, kv_lora_rank=512, rope_dim=64)).kinds() == {Latent(512, 64): 61}
    for bad, words in [
        (numbers(), "--layers is missing: give a file or a folder"),
        (numbers(layers=2), "--kv-heads is missing"),
        (numbers(layers=2, kv_heads=8), "--head-dim is missing"),
        (numbers(layers=2, kv_lora_rank=512), "--rope-dim is missing"),
        (numbers(layers=2, kv_lora_rank=512, rope_dim=64, kv_heads=8), "--kv-heads does not go with --kv-lora-rank"),
        (numbers(layers=2, kv_heads=8, head_dim=128, rope_dim=64), "--rope-dim does not go with --kv-heads"),
        (numbers(layers=2, kv_heads=8, head_dim=128, window_layers=1), "--window-layers 1 needs --window"),
        (numbers(layers=2, kv_heads=8, head_dim=128, window=9, window_layers=3), "not more than --layers 2"),
        (numbers(layers=10**9, kv_heads=8, head_dim=128), "more than any model has"),
    ]:
        with pytest.raises(InputError) as caught:
            model_of(bad)
        assert words in str(caught.value)


def test_a_folder_is_its_config_or_its_only_gguf_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither a config\.json nor a GGUF file"):
        model_at(tmp_path)
    write_gguf(tmp_path / "a-00001-of-00002.gguf", "llama", BASE)
    (tmp_path / "a-00002-of-00002.gguf").write_bytes(b"x")
    model, weights = model_at(tmp_path)
    assert model.kinds() == {Attention(2, 16, 16): 6}
    assert weights.source == "2 parts of a.gguf"
    write_gguf(tmp_path / "b.gguf", "llama", BASE)
    with pytest.raises(InputError, match=r"it holds 2 GGUF files \(a-00001-of-00002.gguf, b.gguf\): give one of them"):
        model_at(tmp_path)
    (tmp_path / "config.json").write_text('{"n_layer": 2, "n_head": 2, "n_embd": 8}')
    assert model_at(tmp_path)[0].kinds() == {Attention(2, 4, 4): 2}
    with pytest.raises(InputError, match="there is no such file or folder"):
        model_at(tmp_path / "Qwen" / "Qwen3-8B")
