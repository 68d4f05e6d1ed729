"""`kvswarm serve ...`: each of the four real engines in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

serve_app = typer.Typer(help="Start an engine by hand.", no_args_is_help=True)

Port = Annotated[int, typer.Option(help="0: any free one.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
HuggingFace = Annotated[
    Path | None,
    typer.Option(help="Folder of a Hugging Face model; default: a tiny random-weight one, made on the spot."),
]
Capacity = Annotated[int, typer.Option("--kv-tokens", help="Tokens that the KV cache holds.")]
Context = Annotated[int, typer.Option("--context-tokens", help="Longest prompt and answer of one request.")]
Caching = Annotated[bool, typer.Option("--prefix-caching/--no-prefix-caching", help="Reuse what is cached.")]


@serve_app.command(name="llama-cpp")
def llama_cpp(
    port: Port = 8080,
    host: Host = "127.0.0.1",
    model: Annotated[
        Path | None, typer.Option(help="GGUF file; default: a tiny random-weight model, made on the spot.")
    ] = None,
    alias: Annotated[str, typer.Option(help="The model's name in requests.")] = "tiny",
    context_tokens: Annotated[int, typer.Option("--ctx-size", help="KV capacity of the whole server.")] = 32768,
    slots: Annotated[int, typer.Option("--parallel", help="Requests served at the same time.")] = 4,
    threads: Annotated[int, typer.Option(help="CPU threads.")] = 1,
    cache_prompt: Annotated[bool, typer.Option(help="Reuse the KV cache of earlier prompts.")] = True,
    cache_ram_mib: Annotated[int, typer.Option("--cache-ram", help="MiB for states of evicted slots; 0: off.")] = 8192,
    slot_save_path: Annotated[Path | None, typer.Option(help="Folder for saved slots, made if need be.")] = None,
) -> None:
    """llama.cpp's own server from the xllamacpp wheel, in the foreground."""
    from harness.embedded.options import LlamaCppOptions
    from harness.embedded.server import serve

    options = LlamaCppOptions(
        host=host,
        port=port,
        model=model,
        alias=alias,
        context_tokens=context_tokens,
        slots=slots,
        threads=threads,
        cache_prompt=cache_prompt,
        cache_ram_mib=cache_ram_mib,
        slot_save_path=slot_save_path,
    )
    raise typer.Exit(serve(options))


@serve_app.command()
def vllm(
    port: Port = 8000,
    host: Host = "127.0.0.1",
    model: HuggingFace = None,
    context: Context = 8192,
    capacity: Capacity = 32768,
    block: Annotated[int, typer.Option("--block-size", help="Tokens of a block; hits are rounded down to it.")] = 32,
    caching: Caching = True,
) -> None:
    """vLLM's server on the CPU, in the foreground; installed under .cache/ first if need be (2.3 GB)."""
    from harness.embedded.engine_options import VllmOptions
    from harness.embedded.server import serve

    options = VllmOptions(
        host=host,
        port=port,
        model=model,
        context_tokens=context,
        kv_tokens=capacity,
        page_tokens=block,
        prefix_caching=caching,
    )
    raise typer.Exit(serve(options))


@serve_app.command()
def sglang(
    port: Port = 30000,
    host: Host = "127.0.0.1",
    model: HuggingFace = None,
    context: Context = 8192,
    capacity: Capacity = 32768,
    page: Annotated[int, typer.Option("--page-size", help="Tokens of a page; hits are rounded down to it.")] = 1,
    caching: Caching = True,
) -> None:
    """SGLang's server on the CPU, in the foreground; installed under .cache/ first if need be (3.3 GB)."""
    from harness.embedded.engine_options import SglangOptions
    from harness.embedded.server import serve

    options = SglangOptions(
        host=host,
        port=port,
        model=model,
        context_tokens=context,
        kv_tokens=capacity,
        page_tokens=page,
        prefix_caching=caching,
    )
    raise typer.Exit(serve(options))


@serve_app.command(name="mlx-lm")
def mlx_lm(
    port: Port = 8081,
    host: Host = "127.0.0.1",
    model: HuggingFace = None,
    entries: Annotated[int, typer.Option("--prompt-cache-size", help="Prompts that the cache keeps.")] = 10,
) -> None:
    """mlx-lm's server on the CPU, in the foreground; installed under .cache/ first if need be (0.4 GB)."""
    from harness.embedded.engine_options import MlxLmOptions
    from harness.embedded.server import serve

    raise typer.Exit(serve(MlxLmOptions(host=host, port=port, model=model, cache_entries=entries)))
