"""Every cache type of the four engines, and what a key and a value of 128 numbers (256 for two of them) take in it."""

from __future__ import annotations

from fractions import Fraction

import gguf
import pytest

from harness.errors import InputError
from harness.kv_size.engine import Engine, StorageType
from harness.kv_size.engines import GROUP_SIZES, engines, mixed
from harness.kv_size.holding import objection, size
from harness.kv_size.shape import Attention, Latent, Model, Recurrence, State

ENGINES = {one.name: one for one in engines()}
PAIR_BYTES = {
    # 128 + 128 numbers of 2 bytes, or of 1
    "vllm": {
        "bfloat16": 512,
        "float16": 512,
        "fp8": 256,
        "fp8_e4m3": 256,
        "fp8_e5m2": 256,
        "fp8_inc": 256,
        # a float32 scale for the key, one for the value
        "int8_per_token_head": 264,
        "fp8_per_token_head": 264,
        "int4_per_token_head": 136,
        # 64 bytes and a scale for each 16 numbers, twice
        "nvfp4": 144,
        "nvfp4_4over6": 144,
        # 64 bytes and a scale for each 32 numbers, twice
        "ultraquant_4bit": 136,
    },
    "sglang": {
        "bfloat16": 512,
        "bf16": 512,
        "fp8_e4m3": 256,
        "fp8_e5m2": 256,
        "mxfp8": 264,
        "nvfp4": 144,
        "fp4_mx_block16": 144,
    },
    # 8 blocks of 32 numbers: 34, 24, 22, 20 and 18 bytes
    "llama-cpp": {
        "f32": 1024,
        "f16": 512,
        "bf16": 512,
        "q8_0": 272,
        "q5_1": 192,
        "q5_0": 176,
        "q4_1": 160,
        "q4_0": 144,
        "iq4_nl": 144,
    },
    # b bits, and scale and bias of 16 bits for each of 4 groups of 64
    "mlx-lm": {"16bit": 512, "8bit": 272, "4bit": 144, "3bit": 112, "2bit": 80},
}


def type_of(engine: str, name: str) -> tuple[Engine, StorageType]:
    return ENGINES[engine], next(one for one in ENGINES[engine].types if one.name == name)


def per_token(engine: str, name: str, *layers: Attention | Latent | State) -> int:
    return size(*type_of(engine, name), Model("m", layers)).per_token


@pytest.mark.parametrize(("engine", "name"), [(engine, name) for engine in PAIR_BYTES for name in PAIR_BYTES[engine]])
def test_bytes_of_a_key_and_a_value(engine: str, name: str) -> None:
    assert per_token(engine, name, Attention(1, 128, 128)) == PAIR_BYTES[engine][name]
    assert per_token(engine, name, Attention(3, 128, 128)) == 3 * PAIR_BYTES[engine][name]


def test_no_type_is_forgotten() -> None:
    turboquant = {f"turboquant_{name}" for name in ("k8v4", "4bit_nc", "k3v4_nc", "3bit_nc")}
    octave = {"octave_k3v4", "octave_k3v3", "octave_k3v3_compact"}
    more = {"vllm": {"fp8_ds_mla", *turboquant, *octave}, "mlx-lm": {"5bit", "6bit"}}
    for name, engine in ENGINES.items():
        assert {one.name for one in engine.types} == PAIR_BYTES[name].keys() | more.get(name, set())


@pytest.mark.parametrize("name", ["q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "f16", "bf16", "f32"])
def test_llama_cpp_types_are_as_ggml_has_them(name: str) -> None:
    block, size_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name.upper()]]
    packing = type_of("llama-cpp", name)[1].keys
    assert packing.bytes_of(block * 5) == size_bytes * 5
    assert packing.bytes_per_element == Fraction(size_bytes, block)
    assert (packing.objection(block + 1) is None) == (block == 1)


def test_keys_and_values_of_llama_cpp_may_differ() -> None:
    engine, keys = type_of("llama-cpp", "q8_0")
    model = Model("m", (Attention(1, 128, 128),))
    assert size(engine, mixed(keys, type_of("llama-cpp", "q4_0")[1]), model).per_token == 136 + 72


def test_turboquant_leaves_two_layers_at_either_end_alone() -> None:
    """4 bits: 64 + 2 bytes for a key, 64 + 4 for a value; k8v4: 128 and 64 + 4; 3 bits: 48 + 2 and 48 + 4."""
    for name, middle in (("4bit_nc", 134), ("k8v4", 196), ("k3v4_nc", 118), ("3bit_nc", 102)):
        assert per_token("vllm", f"turboquant_{name}", *[Attention(1, 128, 128)] * 6) == 4 * 512 + 2 * middle
    state = State(Recurrence.MAMBA, 0, 1)
    assert per_token("vllm", "turboquant_4bit_nc", *[Attention(1, 128, 128)] * 6, state) == 6 * 134
    assert per_token("vllm", "turboquant_4bit_nc", *[Attention(1, 128, 128)] * 3) == 3 * 512


def test_octave_packs_a_slot_for_heads_of_256() -> None:
    """64 numbers of 4 bits, 192 of 3, values of 4 or 3 bits, a scale of 2 bytes for each 64 of a key and for a value:
    32 + 72 + 128 + 10 = 242, padded to 248; 104 + 96 + 10 = 210, to 216. Compact: 96 + 96 + 4."""
    head = Attention(1, 256, 256)
    assert [per_token("vllm", f"octave_k3{name}", head) for name in ("v4", "v3", "v3_compact")] == [248, 216, 196]


def test_latent_vectors() -> None:
    latent = Latent(512, 64)
    assert per_token("vllm", "bfloat16", latent) == per_token("mlx-lm", "16bit", latent) == 576 * 2
    assert per_token("vllm", "fp8", latent) == per_token("sglang", "fp8_e4m3", latent) == 576
    assert per_token("vllm", "fp8_ds_mla", latent) == 512 + 4 * 4 + 64 * 2  # 656
    assert per_token("llama-cpp", "q8_0", latent) == 18 * 34
    assert per_token("sglang", "nvfp4", latent) == 288 + 36
    assert per_token("mlx-lm", "4bit", latent) == 256 + 8 * 4 + 32 + 4


def test_index_keys_of_sparse_attention() -> None:
    """132 bytes beside the latent vector in vLLM and SGLang, whose fp8 then is that of DeepSeek's own layout."""
    latent = Latent(512, 64, index_size=128)
    assert per_token("vllm", "bfloat16", latent) == 1152 + 132
    assert per_token("vllm", "fp8", latent) == per_token("sglang", "fp8_e4m3", latent) == 656 + 132
    assert per_token("llama-cpp", "f16", latent) == 1152 + 256
    assert per_token("mlx-lm", "16bit", latent) == 1152 + 256


def test_mlx_lm_keeps_heads_of_some_models_with_latent_vectors() -> None:
    latent = Latent(512, 64, expanded=Attention(16, 192, 128))
    assert per_token("mlx-lm", "16bit", latent) == 16 * 320 * 2
    assert per_token("llama-cpp", "f16", latent) == 576 * 2


def test_recurrent_states() -> None:
    def state_bytes(engine: str, recurrence: Recurrence, told: int | None = None) -> int:
        found = size(ENGINES[engine], ENGINES[engine].types[0], Model("m", (State(recurrence, 10, 100, told),)))
        return found.per_session

    of = {name: [state_bytes(name, kind) for kind in Recurrence] for name in ENGINES}
    assert list(Recurrence) == [Recurrence.MAMBA, Recurrence.DELTA, Recurrence.KIMI_DELTA, Recurrence.CONVOLUTION]
    assert of["llama-cpp"] == [440, 440, 440, 440]
    assert of["sglang"] == [420, 420, 420, 420]
    assert of["vllm"] == [220, 220, 420, 220]
    assert of["mlx-lm"] == [220, 420, 420, 220]
    told = {name: state_bytes(name, Recurrence.DELTA, 4) for name in ENGINES}
    assert told == {"vllm": 420, "sglang": 420, "llama-cpp": 440, "mlx-lm": 420}
    assert state_bytes("sglang", Recurrence.DELTA, 2) == 220


@pytest.mark.parametrize(
    ("engine", "name", "layer", "reason"),
    [
        ("llama-cpp", "q8_0", Attention(8, 80, 80), "a key has 80 numbers, and blocks of 32 do not divide it"),
        ("llama-cpp", "q4_0", Attention(8, 64, 80), "a value has 80 numbers"),
        ("vllm", "nvfp4", Attention(8, 72, 72), "blocks of 16"),
        ("vllm", "nvfp4", Latent(512, 64), "it does not hold MLA"),
        ("vllm", "octave_k3v4", Attention(8, 128, 128), "heads of 256 only"),
        ("vllm", "octave_k3v4", Attention(8, 256, 256, 1024), "sliding window"),
        ("vllm", "fp8_ds_mla", Attention(8, 128, 128), "it is made for MLA only"),
        ("vllm", "fp8_ds_mla", Latent(320, 64), "a latent vector has 320 numbers, and blocks of 128"),
        ("sglang", "nvfp4", Latent(512, 64, 128), "MLA with index keys"),
        ("mlx-lm", "8bit", Attention(8, 128, 128, 1024), "sliding window"),
        ("mlx-lm", "4bit", Attention(8, 96, 96), "blocks of 64"),
        ("mlx-lm", "6bit", Attention(8, 128, 128), "numbers of 6 bits do not fill its words of 32"),
    ],
)
def test_what_does_not_fit(engine: str, name: str, layer: Attention | Latent, reason: str) -> None:
    found = objection(*type_of(engine, name), Model("m", (Attention(8, 256, 256), layer)[-1:]))
    assert found is not None
    assert reason in found


def test_latent_vectors_have_one_type() -> None:
    engine, keys = type_of("llama-cpp", "q8_0")
    both = mixed(keys, type_of("llama-cpp", "f16")[1])
    assert "both types have to be the same" in str(objection(engine, both, Model("m", (Latent(512, 64),))))


def test_groups_of_mlx_lm() -> None:
    """b/8 + 4/g bytes a number."""
    head = Attention(1, 128, 128)
    for group in GROUP_SIZES:
        engine = next(one for one in engines(group) if one.name == "mlx-lm")
        for kept in engine.types[1:]:
            bits = int(kept.name.removesuffix("bit"))
            assert kept.keys.bytes_per_element == Fraction(bits, 8) + Fraction(4, group)
        eight = next(one for one in engine.types if one.name == "8bit")
        assert size(engine, eight, Model("m", (head,))).per_token == 256 + 256 // group * 4
    with pytest.raises(InputError, match="--group-size 48 is not one of mlx-lm's"):
        engines(48)


def test_only_types_below_16_bits_change_outputs() -> None:
    plain = {kept.name for engine in engines() for kept in engine.types if not kept.changes_outputs}
    assert plain == {"bfloat16", "float16", "bf16", "f16", "f32", "16bit"}
