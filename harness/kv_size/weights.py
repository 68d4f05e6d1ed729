"""How many bytes a model's weights are, from the files that they lie in."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

INDEX = "model.safetensors.index.json"
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")


@dataclass(frozen=True, slots=True)
class Weights:
    """Their size, or why it is not known; and where that is from."""

    size_bytes: int | None
    source: str


def weights_of_gguf(path: Path) -> Weights:
    """The file itself, with all its parts if it is one of several."""
    part = _PART.fullmatch(path.name)
    if part is None:
        return Weights(path.stat().st_size, path.name)
    count = int(part[3])
    parts = [path.with_name(f"{part[1]}-{number:05}-of-{part[3]}.gguf") for number in range(1, count + 1)]
    missing = [one.name for one in parts if not one.is_file()]
    if missing:
        return Weights(None, f"{missing[0]} is not beside {path.name}")
    return Weights(sum(one.stat().st_size for one in parts), f"{count} parts of {part[1]}.gguf")


def weights_in(folder: Path) -> Weights:
    """The total that the index states, or the files themselves: those of Hugging Face where there are others too."""
    total = _total(folder / INDEX)
    if total is not None:
        return Weights(total, INDEX)
    files = sorted(folder.glob("model*.safetensors")) or sorted(folder.glob("*.safetensors"))
    if not files:
        return Weights(None, f"there are no *.safetensors and no {INDEX} beside config.json")
    names = files[0].name if len(files) == 1 else f"{len(files)} files *.safetensors"
    return Weights(sum(file.stat().st_size for file in files), names)


def _total(index: Path) -> int | None:
    """`metadata.total_size`; None where there is no index, or it does not tell."""
    try:
        value = json.loads(index.read_text(encoding="utf-8"))["metadata"]["total_size"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return value if type(value) is int and value > 0 else None
