"""What is asked of a model's cache, and the model that it is asked of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from harness.errors import InputError
from harness.kv_size.config_json import read_config
from harness.kv_size.gguf_file import is_gguf
from harness.kv_size.gguf_layers import read_gguf
from harness.kv_size.keys import MOST_LAYERS
from harness.kv_size.shape import Attention, Latent, Model
from harness.kv_size.weights import Weights, weights_in, weights_of_gguf

NUMBERS = "--layers 36 --kv-heads 8 --head-dim 128"
NO_FILES = Weights(None, "the model is given by numbers")


@dataclass(frozen=True, slots=True)
class Card:
    name: str
    memory_bytes: int
    usable: Fraction
    """Share of it that weights and cache may take."""


@dataclass(frozen=True, slots=True)
class Question:
    model: Model
    weights: Weights
    tokens: int
    """Length of a session."""
    card: Card | None = None


def model_at(path: Path) -> tuple[Model, Weights]:
    """A model from a config.json, a GGUF file, or a folder with one. Raises InputError."""
    if path.is_dir():
        path = _in_folder(path)
    if is_gguf(path):
        return read_gguf(path), weights_of_gguf(path)
    return read_config(path), weights_in(path.parent)


def model_of(numbers: Mapping[str, int | None]) -> Model:
    """A model from numbers by the names of their flags. Raises InputError if they do not make one."""
    layers = _needed(numbers, "--layers")
    if layers > MOST_LAYERS:
        raise InputError(f"--layers {layers} are more than any model has.")
    rank = numbers.get("--kv-lora-rank")
    if rank is not None:
        _refuse(numbers, ("--kv-heads", "--head-dim", "--value-dim", "--window", "--window-layers"), "--kv-lora-rank")
        return Model("numbers", (Latent(rank, _needed(numbers, "--rope-dim")),) * layers)
    _refuse(numbers, ("--rope-dim",), "--kv-heads")
    kv_heads, size = _needed(numbers, "--kv-heads"), _needed(numbers, "--head-dim")
    value_size = numbers.get("--value-dim") or size
    window, windowed = numbers.get("--window"), numbers.get("--window-layers")
    if windowed is not None and (window is None or windowed > layers):
        raise InputError(f"--window-layers {windowed} needs --window, and not more than --layers {layers}.")
    count = 0 if window is None else layers if windowed is None else windowed
    full = (Attention(kv_heads, size, value_size),) * (layers - count)
    return Model("numbers", full + (Attention(kv_heads, size, value_size, window),) * count)


def _needed(numbers: Mapping[str, int | None], flag: str) -> int:
    value = numbers.get(flag)
    if value is None:
        raise InputError(f"{flag} is missing: give a file or a folder, or numbers such as {NUMBERS}.")
    return value


def _refuse(numbers: Mapping[str, int | None], flags: tuple[str, ...], beside: str) -> None:
    for flag in flags:
        if numbers.get(flag) is not None:
            raise InputError(f"{flag} does not go with {beside}: MLA is --kv-lora-rank and --rope-dim alone.")


def _in_folder(folder: Path) -> Path:
    config = folder / "config.json"
    if config.is_file():
        return config
    files = sorted(folder.glob("*.gguf"))
    first = [file for file in files if "-of-" not in file.name or "-00001-of-" in file.name]
    if len(first) == 1:
        return first[0]
    if first:
        names = ", ".join(file.name for file in first[:5])
        raise InputError(f"{folder}: it holds {len(first)} GGUF files ({names}): give one of them.")
    raise InputError(f"{folder}: it holds neither a config.json nor a GGUF file.")
