"""The tiny model as a Hugging Face folder: the same tokens and the same weights as the GGUF file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from harness.embedded.hugging_face import halves_apart, tiny_folder, to_bfloat16, write_safetensors
from harness.embedded.server import RunningServer
from harness.embedded.tiny_tokenizer import train
from harness.embedded.tiny_weights import Shape, tensors
from harness.workload.words import CANDIDATES
from tests.embedded.dialogue import messages_of, prompt_ids, token_ids

SMALL = Shape(layers=1, hidden=64, heads=2, kv_heads=1, feed_forward=96)

TEXTS = [
    "# time people way",
    "#time",
    "a  b\n\n\tc",
    "naïve café 東京 🙂",
    "it's 12,345.67 o'clock!",
    " leading",
    "x " * 50,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("models"), SMALL, "float32")


def read_safetensors(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """Name -> (type, shape, bytes)."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    del header["__metadata__"]
    numbers = content[8 + length :]
    assert length % 8 == 0
    assert max(tensor["data_offsets"][1] for tensor in header.values()) == len(numbers)
    return {
        name: (tensor["dtype"], tensor["shape"], numbers[slice(*tensor["data_offsets"])])
        for name, tensor in header.items()
    }


def test_the_tokens_are_those_of_llama_cpp(folder: Path, llama_cpp: RunningServer) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in [*TEXTS, " ".join(CANDIDATES)]:
        assert tokenizer.encode(text).ids == token_ids(llama_cpp, text), text
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_the_template_is_that_of_llama_cpp(folder: Path, llama_cpp: RunningServer) -> None:
    import jinja2

    template = json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]
    contents = ("# hello", "a reply", "# \n more ")
    rendered = jinja2.Template(template).render(messages=messages_of(*contents), add_generation_prompt=True)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.encode(rendered).ids == prompt_ids(llama_cpp, *contents)


def test_the_weights_are_those_of_the_gguf_file(folder: Path) -> None:
    vocabulary = train(CANDIDATES)
    expected = dict(tensors(SMALL, len(vocabulary.tokens), vocabulary.whole_words))
    written = read_safetensors(folder / "model.safetensors")
    assert len(written) == len(expected)
    for theirs, ours in (
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("model.layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight"),
        ("model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight"),
        ("model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight"),
        ("lm_head.weight", "output.weight"),
    ):
        kind, shape, numbers = written[theirs]
        assert (kind, tuple(shape)) == ("F32", expected[ours].shape)
        assert numbers == expected[ours].tobytes()


def test_rotated_rows_are_in_hugging_faces_order() -> None:
    """Heads of 4 rows: GGUF turns (0, 1) and (2, 3) together, Hugging Face (0, 2) and (1, 3)."""
    rows = np.arange(8, dtype=np.float32).reshape(8, 1)
    assert halves_apart(rows, heads=2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_bfloat16_is_rounded_to_the_nearest() -> None:
    # 1.0 is 3F80; the next number up is 1 + 2**-7 (3F81). Halfway between two goes to the even one.
    values = [1.0, 1 + 2**-8, 1 + 2**-8 + 2**-20, 1 + 3 * 2**-8, -1.0, 0.0]
    expected = [0x3F80, 0x3F80, 0x3F81, 0x3F82, 0xBF80, 0]
    assert to_bfloat16(np.array([values], np.float32))[0].tolist() == expected


def test_both_number_formats_are_written_in_full(tmp_path: Path) -> None:
    weights = {"a": np.array([[1, -2]], np.float32), "b": np.array([0.5], np.float32)}
    write_safetensors(tmp_path / "f", weights, "float32")
    assert read_safetensors(tmp_path / "f") == {
        "a": ("F32", [1, 2], bytes.fromhex("0000803f000000c0")),
        "b": ("F32", [1], bytes.fromhex("0000003f")),
    }
    write_safetensors(tmp_path / "b", weights, "bfloat16")
    assert read_safetensors(tmp_path / "b") == {
        "a": ("BF16", [1, 2], bytes.fromhex("803f00c0")),
        "b": ("BF16", [1], bytes.fromhex("003f")),
    }


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    first = tiny_folder(tmp_path, SMALL)
    assert [path.name for path in tmp_path.iterdir()] == [first.name]
    (first / "config.json").write_text("left alone")
    assert tiny_folder(tmp_path, SMALL) == first
    assert (first / "config.json").read_text() == "left alone"
    assert tiny_folder(tmp_path, SMALL, "float32") != first
