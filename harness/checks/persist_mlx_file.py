"""mlx-lm's prompt-cache file, read without mlx; and the folder of the model that it belongs to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import InputError

LENGTH_BYTES = 8
MOST_HEADER_BYTES = 100_000_000
"""As the safetensors format allows."""
PLACES, PLACE_BYTES = 64, 65_536
"""Of a file of weights that are looked at: all of it would take long, and other weights differ all over."""
TOKENIZERS = ("tokenizer.json", "tokenizer.model")


@dataclass(frozen=True, slots=True)
class PromptCache:
    """What the file tells of itself."""

    model: str
    """The model as mlx_lm.cache_prompt was given it."""
    tokenizer_config: str
    """As JSON."""
    classes: tuple[str, ...]
    """mlx-lm's kind of cache, layer by layer."""
    tokens: int | None
    """That it holds; None: its kind of cache does not tell."""
    kv_bits: int | None
    """None: not quantised."""
    kv_group_size: int | None
    bytes: int

    @property
    def kinds(self) -> str:
        return ", ".join(sorted(set(self.classes)))


def read(path: Path) -> PromptCache:
    """Raises InputError if it is no prompt-cache file of mlx-lm."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(LENGTH_BYTES), "little")
            header = json.loads(file.read(size)) if size <= MOST_HEADER_BYTES else {}
            told = header["__metadata__"]
            classes = _numbered(told, "1.")
            first = classes[0]

            def scalar(name: str) -> int:
                begin, end = header[name]["data_offsets"]
                file.seek(LENGTH_BYTES + size + begin)
                return int.from_bytes(file.read(end - begin), "little", signed=True)

            quantised = first == "QuantizedKVCache"
            return PromptCache(
                model=told["0.model"],
                tokenizer_config=told["0.tokenizer_config"],
                classes=classes,
                tokens=scalar("0.2") if first in ("KVCache", "QuantizedKVCache") else None,
                kv_group_size=scalar("0.3") if quantised else None,
                kv_bits=scalar("0.4") if quantised else None,
                bytes=path.stat().st_size,
            )
    except OSError as error:
        raise InputError(f"The prompt cache {path} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, IndexError, TypeError):
        raise InputError(
            f"{path} is no prompt cache that mlx_lm.cache_prompt of mlx-lm 0.30 or later wrote, or it is damaged"
        ) from None


def model_identity(folder: Path) -> dict[str, str | None]:
    """Marks of a model's folder. Raises InputError if it has no config.json, tokeniser or safetensors files."""
    weights = sorted(folder.glob("*.safetensors"))
    tokenizers = [folder / name for name in TOKENIZERS if (folder / name).is_file()]
    if not (folder / "config.json").is_file() or not weights or not tokenizers:
        raise InputError(
            f"{folder} is no model that mlx-lm could load: give a folder with a config.json, a tokenizer.json and "
            "weights in safetensors files"
        )
    try:
        return {
            "engine": "mlx-lm",
            "model": str(folder.resolve()),
            "config": _mark(folder / "config.json"),
            "tokenizer": _mark(*tokenizers),
            "tokenizer_config": _mark(folder / "tokenizer_config.json", folder / "chat_template.jinja"),
            "weights": _weights(weights),
        }
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from None


def _numbered(told: Mapping[str, Any], prefix: str) -> tuple[str, ...]:
    """The values of prefix0, prefix1, ... in that order."""
    count = sum(1 for name in told if name.startswith(prefix))
    return tuple(told[f"{prefix}{number}"] for number in range(count))


def _mark(*paths: Path) -> str:
    """The first 16 hex digits of sha-256 over the files that are there."""
    whole = hashlib.sha256()
    for path in paths:
        if path.is_file():
            whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


def _weights(paths: list[Path]) -> str:
    """The same over each file's name, size and `PLACES` places."""
    whole = hashlib.sha256()
    for path in paths:
        size = path.stat().st_size
        whole.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            for number in range(PLACES):
                file.seek(size * number // PLACES)
                whole.update(file.read(PLACE_BYTES))
    return whole.hexdigest()[:16]
