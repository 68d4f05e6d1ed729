"""What the embedded server is started with, and the same as a command line."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from harness.errors import InputError

API_KEY_VARIABLE = "LLAMA_API_KEY"
"""llama-server's own name for it. A key goes through the environment, as any user can read a command line."""


@dataclass(frozen=True, slots=True)
class LlamaCppOptions:
    """Options of llama.cpp's server."""

    title: ClassVar[str] = "llama.cpp's server"
    deadline_s: ClassVar[float] = 60.0
    """How long it may take until it is healthy."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: any free port."""
    model: Path | None = None
    """A GGUF file; None: the tiny model, made on the spot."""
    alias: str = "tiny"
    """The model's name in requests and answers."""
    context_tokens: int = 16384
    """KV capacity of the whole server: each of n slots gets an n-th of it, unless `kv_unified`."""
    slots: int = 4
    """Requests that are served at the same time."""
    threads: int = 1
    cache_prompt: bool = True
    """False: a request is computed in full and reports 0 cached tokens, unless it asks for `cache_prompt` itself."""
    cache_ram_mib: int = 8192
    """Host memory for the states of evicted slots; 0: none, -1: no limit in bytes. Unused without `cache_prompt`."""
    kv_unified: bool = False
    """One KV buffer that all slots share."""
    slot_save_path: Path | None = None
    """Folder for `POST /slots/N?action=save`, made if need be; None: the server refuses to save."""
    api_key: str | None = None
    verbose: bool = False
    """Log some lines for each request."""

    def check(self) -> None:
        """Raise InputError for what llama.cpp would take without a word, or refuse without a reason."""
        for name, value in (("slots", self.slots), ("threads", self.threads), ("context tokens", self.context_tokens)):
            if value < 1:
                raise InputError(f"llama.cpp's server cannot have {value} {name}: give at least 1.")
        if self.model is not None:
            check_model(self.model)
        check_address(self.title, self.host, self.port)

    def size(self) -> str:
        """In words, for people."""
        return f"{self.slots} slots, {self.context_tokens} tokens of KV cache"

    def arguments(self) -> list[str]:
        """The command line that `parse` turns into these options again, without the API key."""
        words = ["--host", self.host, "--port", str(self.port), "--alias", self.alias]
        words += ["--ctx-size", str(self.context_tokens), "--parallel", str(self.slots), "--threads", str(self.threads)]
        words += ["--cache-ram", str(self.cache_ram_mib)]
        words += ["--cache-prompt" if self.cache_prompt else "--no-cache-prompt"]
        words += ["--kv-unified" if self.kv_unified else "--no-kv-unified"]
        words += ["--model", str(self.model)] if self.model else []
        words += ["--slot-save-path", str(self.slot_save_path)] if self.slot_save_path else []
        words += ["--verbose"] if self.verbose else []
        return words


def check_address(title: str, host: str, port: int) -> None:
    """Raise InputError if the server called `title` could not listen there."""
    if not 0 <= port <= 65535:
        raise InputError(f"{port} is not a port: choose one from 1 to 65535, or 0 for any free one.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise InputError(
            f"{title} cannot listen on {host}:{port} ({error.strerror}): "
            "stop what uses that port, or choose another one (0: any free one)."
        ) from error


def check_model(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise InputError(
            f"the model file {path} cannot be read ({error.strerror}): give the path of a GGUF file."
        ) from error
    if magic != b"GGUF":
        raise InputError(f"the model file {path} is not a GGUF file: llama.cpp reads no other kind.")


def parse(words: Sequence[str] | None = None) -> LlamaCppOptions:
    """Options from a command line (default: this process's) with llama-server's flag names."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.embedded",
        description="Run llama.cpp's own server from the xllamacpp wheel until standard input ends. "
        f"An API key is taken from ${API_KEY_VARIABLE}.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    default = LlamaCppOptions()
    switch = argparse.BooleanOptionalAction

    def add(flag: str, field: str, text: str, **how: Any) -> None:
        parser.add_argument(flag, dest=field, default=getattr(default, field), help=text, **how)

    add("--host", "host", "address to listen on")
    add("--port", "port", "port to listen on; 0: any free one", type=int)
    add("--model", "model", "GGUF file; None: the tiny model", type=Path)
    add("--alias", "alias", "the model's name in requests and answers")
    add("--ctx-size", "context_tokens", "KV capacity of the whole server in tokens", type=int)
    add("--parallel", "slots", "slots: requests served at the same time", type=int)
    add("--threads", "threads", "CPU threads", type=int)
    add("--cache-prompt", "cache_prompt", "reuse the KV cache of earlier prompts", action=switch)
    add("--cache-ram", "cache_ram_mib", "MiB for the states of evicted slots; 0: off, -1: no limit", type=int)
    add("--kv-unified", "kv_unified", "one KV buffer that all slots share", action=switch)
    add("--slot-save-path", "slot_save_path", "folder for saved slots", type=Path)
    add("--verbose", "verbose", "log some lines for each request", action="store_true")
    options = LlamaCppOptions(**vars(parser.parse_args(words)))
    return replace(options, api_key=os.environ.get(API_KEY_VARIABLE))
