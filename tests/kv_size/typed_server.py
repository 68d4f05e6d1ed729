"""`python -m tests.kv_size.typed_server MODEL KEYS VALUES FOLDER`: llama.cpp's server with caches of these types.

The harness's own embedded server always has f16. This one has one slot of 4,096 tokens, saves it into FOLDER, writes
its URL into a file there, and lives until its standard input ends.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import gguf
import xllamacpp

CONTEXT_TOKENS = 4096
URL = "url"
"""The file that tells it; not a line of the log, with which the server's own lines mix."""


def main(model: str, keys: str, values: str, folder: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_gpu_layers = 0
    params.cache_ram_mib = 0
    params.slot_save_path = f"{folder}/"
    params.verbosity = 4  # the sizes of caches are told from here on
    params.cache_type_k = int(gguf.GGMLQuantizationType[keys.upper()])
    params.cache_type_v = int(gguf.GGMLQuantizationType[values.upper()])
    server = xllamacpp.Server(params)
    (Path(folder) / "unfinished").write_text(server.listening_address)
    (Path(folder) / "unfinished").rename(Path(folder) / URL)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
