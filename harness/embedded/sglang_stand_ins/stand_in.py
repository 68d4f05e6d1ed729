"""Modules that let SGLang be imported where a package has no use: any name is there, and none can be called.

SGLang imports torchvision and sgl_kernel whatever it serves. A dense text model on a CPU calls neither of them.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any


class _Name(type):
    """A class for each name, so that it can be a base class, an annotation, a key or a default, and has any member."""

    def __getattr__(cls, name: str) -> Any:
        return _named(f"{cls.__qualname__}.{name}")

    def __call__(cls, *_: object, **__: object) -> Any:
        raise NotImplementedError(f"{cls.__qualname__} is only a stand-in here: serve a dense text model")


class _Module(ModuleType):
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        return _named(f"{self.__name__}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module below `package`."""

    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith(self._prefix) else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def stand_in(package: str) -> None:
    """Turn the module `package`, which is just being imported, into a stand-in, and all that is imported from below."""
    sys.meta_path.append(_Finder(package))
    sys.modules[package].__class__ = _Module


def _named(path: str) -> Any:
    name = path.rpartition(".")[2]
    if name.startswith("__"):
        raise AttributeError(path)
    return _Name(name, (), {"__qualname__": path})
