"""llama.cpp's own HTTP server, out of the xllamacpp wheel, run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.embedded.options import LlamaCppOptions
from harness.errors import InputError, KvswarmError

NOT_INSTALLED = (
    "llama.cpp's server cannot run here, as a Python package of it cannot be imported ({reason}): "
    "install the extra (pip install 'kvswarm[embedded]'; xllamacpp has wheels for Linux with glibc and for macOS 13 or "
    "newer, on x86_64 and arm64), or run llama-server itself, from your system's packages, `brew install llama.cpp` or "
    "a build of llama.cpp (`llama-server --metrics --slots -m MODEL.gguf`), or test any other OpenAI-compatible "
    "server with --target."
)


def start(options: LlamaCppOptions) -> Any:
    """Start the server on threads of its own; it lives as long as the object returned (of a class without types).

    Raises InputError if a package is missing, KvswarmError if llama.cpp refuses; its own messages go to stderr.
    """
    llama, tiny_model = engine()
    params = llama.CommonParams()
    params.model.path = str(options.model or tiny_model())
    params.model_alias = {options.alias}
    params.hostnames = [options.host]
    params.port = options.port
    params.n_ctx = options.context_tokens
    params.n_parallel = options.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.n_gpu_layers = 0
    params.cache_prompt = options.cache_prompt
    # Without prompt caching nothing is ever loaded from host memory; saving into it would only cost time.
    params.cache_ram_mib = options.cache_ram_mib if options.cache_prompt else 0
    params.kv_unified = options.kv_unified
    params.endpoint_metrics = params.endpoint_slots = True
    params.verbosity = 3 if options.verbose else 1
    if options.api_key is not None:
        params.api_keys = [options.api_key]
    if options.slot_save_path is not None:
        options.slot_save_path.mkdir(parents=True, exist_ok=True)
        params.slot_save_path = f"{options.slot_save_path}/"
    try:
        return llama.Server(params)
    except RuntimeError as error:
        raise KvswarmError(f"llama.cpp's server did not start with the model {params.model.path}: {error}") from error


def engine() -> tuple[ModuleType, Callable[[], Path]]:
    """The wheel, and the maker of the tiny model; InputError names the alternatives if they are not installed."""
    try:
        import xllamacpp

        from harness.embedded.tiny_model import tiny_model
    except ImportError as error:
        raise InputError(NOT_INSTALLED.format(reason=error)) from error
    return xllamacpp, tiny_model
