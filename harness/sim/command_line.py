"""`kvswarm serve sim ...`: a simulated engine in the foreground."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import typer

from harness.errors import InputError
from harness.sim.process_options import MannerName, RouterName

PORTS: dict[str, int] = {"vllm": 8000, "sglang": 30000, "llama-cpp": 8080, "mlx-lm": 8081}
"""Where the engine itself listens unless told otherwise."""


def sim(
    manner: Annotated[str, typer.Option(help="Whose: vllm, sglang, llama-cpp or mlx-lm.")] = "vllm",
    preset: Annotated[str, typer.Option(help="On what, as docs/simulator.md lists them.")] = "h100-8b",
    kv_tokens: Annotated[int | None, typer.Option(help="Tokens of KV cache; default: the preset's.")] = None,
    context_tokens: Annotated[int, typer.Option(help="Longest prompt and answer of one request.")] = 32768,
    page_tokens: Annotated[int | None, typer.Option(help="Tokens of a block (vLLM) or page (SGLang).")] = None,
    slots: Annotated[int, typer.Option(help="llama.cpp: requests served at the same time.")] = 4,
    cache_ram: Annotated[int, typer.Option(help="llama.cpp: MiB for states of evicted slots; 0: off.")] = 0,
    slot_save_path: Annotated[str | None, typer.Option(help="llama.cpp: folder for saved slots.")] = None,
    entries: Annotated[int, typer.Option(help="mlx-lm: prompts that the cache keeps.")] = 10,
    prefix_caching: Annotated[bool, typer.Option(help="Reuse what is cached.")] = True,
    max_running: Annotated[int, typer.Option(help="vLLM, SGLang: requests under way at the same time.")] = 256,
    step_tokens: Annotated[int, typer.Option(help="Tokens that one step computes at most.")] = 8192,
    time_scale: Annotated[float, typer.Option(help="Simulated seconds in one second.")] = 1.0,
    jitter: Annotated[float, typer.Option(help="Relative standard deviation of a step's duration.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of answers, jitter and faults.")] = 0,
    request_log: Annotated[str | None, typer.Option(help="File for the ids of all requests that came.")] = None,
    replicas: Annotated[int, typer.Option(help="Engines with a cache each, behind a router.")] = 1,
    router: Annotated[str, typer.Option(help="How it chooses: round-robin or prefix.")] = "round-robin",
    fault: Annotated[
        list[str] | None, typer.Option(help="What goes wrong, as kind:value@share; several. See docs/simulator.md.")
    ] = None,
    alias: Annotated[str, typer.Option(help="The model's name in requests.")] = "tiny",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="0: any free one; default: the engine's own.")] = None,
) -> None:
    """A simulated engine: talks and caches as the real one does, and needs no GPU."""
    from harness.embedded.server import serve
    from harness.sim.options import SimOptions

    options = SimOptions(
        manner=_one_of("--manner", manner, MannerName),
        preset=preset,
        kv_tokens=kv_tokens,
        context_tokens=context_tokens,
        page_tokens=page_tokens,
        slots=slots,
        cache_ram_mib=cache_ram,
        slot_save_path=slot_save_path,
        entries=entries,
        prefix_caching=prefix_caching,
        max_running=max_running,
        step_tokens=step_tokens,
        time_scale=time_scale,
        jitter=jitter,
        seed=seed,
        request_log=request_log,
        replicas=replicas,
        router=_one_of("--router", router, RouterName),
        faults=tuple(fault or ()),
        alias=alias,
        host=host,
        port=PORTS[manner] if port is None else port,
    )
    raise typer.Exit(serve(options))


def _one_of(option: str, given: str, names: Any) -> Any:
    """`given` if it is one of the names of a Literal. Raises InputError."""
    if given not in get_args(names):
        raise InputError(f"{option} is {given!r}: choose one of {', '.join(get_args(names))}.")
    return given
