"""The metadata of a GGUF file.

Read here and not with the package gguf, which makes two arrays of each of the tokenizer's texts: it takes 15 seconds
for a vocabulary of 150,000. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.kv_size.keys import MOST_LAYERS, Keys

MAGIC = b"GGUF"
VERSIONS = (2, 3)
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
"""Type of a value -> its layout."""
TEXT, ARRAY = 8, 9


class _Damaged(Exception):
    """The message says how, without the place."""


def is_gguf(path: Path) -> bool:
    """Whether the file begins as a GGUF file does. Raises InputError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file or folder.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None


def read_metadata(path: Path) -> tuple[str, Keys]:
    """The architecture, and its keys without their prefix; the beginning of a file is enough, up to its tensors.

    Raises InputError if the file is damaged. Texts and arrays longer than any model has layers are left out.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            values = _Header(data).values()
    except _Damaged as error:
        raise InputError(f"{path}: it begins as a GGUF file, but {error}.") from None
    architecture = values.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        raise InputError(f"{path}: the key general.architecture is missing, so its KV cache cannot be told.")
    prefix = f"{architecture}."
    ours = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
    return architecture, Keys(str(path), ours)


class _Header:
    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = len(MAGIC)

    def values(self) -> dict[str, Any]:
        version = self._scalar("<I")
        if version not in VERSIONS:
            raise _Damaged(f"of version {version}; known are {VERSIONS[0]} and {VERSIONS[1]}, little-endian")
        _tensors, count = self._scalar("<Q"), self._scalar("<Q")
        found = {}
        for _ in range(count):  # ends with the file at the latest
            name = self._text()
            found[name] = self._value(self._scalar("<I"))
        return found

    def _value(self, kind: int) -> Any:
        if kind in SCALARS:
            value = self._scalar(SCALARS[kind])
            return int(value) if isinstance(value, bool) else value
        if kind == TEXT:
            return self._text()
        if kind == ARRAY:
            return self._array()
        raise _Damaged(f"has a value of an unknown type {kind}")

    def _array(self) -> list[Any] | None:
        """None in place of a long one, and of texts."""
        kind, count = self._scalar("<I"), self._scalar("<Q")
        if kind in SCALARS:
            if count <= MOST_LAYERS:
                return [self._value(kind) for _ in range(count)]
            self._skip(count * struct.calcsize(SCALARS[kind]))
        elif kind == TEXT:
            for _ in range(count):
                self._skip(self._scalar("<Q"))
        else:
            raise _Damaged(f"has an array of an unknown type {kind}")
        return None

    def _scalar(self, layout: str) -> Any:
        start = self._at
        self._skip(struct.calcsize(layout))
        return struct.unpack_from(layout, self._data, start)[0]

    def _text(self) -> str:
        length = self._scalar("<Q")
        start = self._at
        self._skip(length)
        return self._data[start : self._at].decode("utf-8", errors="replace")

    def _skip(self, length: int) -> None:
        self._at += length
        if self._at > len(self._data):
            raise _Damaged("ends within its metadata")
