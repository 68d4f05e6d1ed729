"""`kvswarm kv-size`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def kv_size(
    path: Annotated[
        Path | None, typer.Argument(help="config.json, GGUF file, or a folder with one; none: the numbers below.")
    ] = None,
    layers: Annotated[str, typer.Option(help="Layers with attention.")] = "",
    kv_heads: Annotated[str, typer.Option(help="KV heads of a layer.")] = "",
    head_dim: Annotated[str, typer.Option(help="Numbers in a head's key.")] = "",
    value_dim: Annotated[str, typer.Option(help="Numbers in a head's value; default: as in its key.")] = "",
    window: Annotated[str, typer.Option(help="Tokens of a sliding window.")] = "",
    window_layers: Annotated[str, typer.Option(help="Layers that have it; default: all.")] = "",
    kv_lora_rank: Annotated[str, typer.Option(help="MLA: numbers in a latent vector.")] = "",
    rope_dim: Annotated[str, typer.Option(help="MLA: numbers with the position.")] = "",
    tokens: Annotated[str, typer.Option(help="Length of a session.")] = "32768",
    card: Annotated[str, typer.Option(help="Memory of the card (24GiB) or its name (rtx-4090).")] = "",
    usable: Annotated[str, typer.Option(help="Share of the card for weights and cache.")] = "0.9",
    weights: Annotated[str, typer.Option(help="Size of the weights, such as 16GB; default: of the files.")] = "",
    parameters: Annotated[str, typer.Option(help="Size of the weights as parameters, such as 8B.")] = "",
    weight_bits: Annotated[str, typer.Option(help="Bits of each of these parameters.")] = "16",
    engine: Annotated[str, typer.Option(help="vllm, sglang, llama-cpp, mlx-lm; several: a,b. Default: all.")] = "",
    types: Annotated[str, typer.Option("--type", help="Cache type; several: a,b. Default: all.")] = "",
    type_v: Annotated[str, typer.Option(help="llama-cpp: another type for values.")] = "",
    group_size: Annotated[str, typer.Option(help="mlx-lm: numbers that share a scale, 32, 64 or 128.")] = "64",
    keep_windows: Annotated[
        bool, typer.Option("--keep-windows", help="For an engine that keeps what lies behind a window, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """What a token takes in the KV cache, and how many sessions fit on a card."""
    from rich.console import Console

    from harness.errors import InputError
    from harness.kv_size import quantity
    from harness.kv_size.answer import answer, chosen
    from harness.kv_size.answer import as_json as to_json
    from harness.kv_size.cards import card_bytes
    from harness.kv_size.engines import engines
    from harness.kv_size.question import NO_FILES, Card, Question, model_at, model_of
    from harness.kv_size.tables import render
    from harness.kv_size.weights import Weights

    given = {
        "--layers": layers,
        "--kv-heads": kv_heads,
        "--head-dim": head_dim,
        "--value-dim": value_dim,
        "--window": window,
        "--window-layers": window_layers,
        "--kv-lora-rank": kv_lora_rank,
        "--rope-dim": rope_dim,
    }
    numbers = {flag: quantity.whole(flag, text) for flag, text in given.items() if text}
    if path is not None and numbers:
        raise InputError(f"{next(iter(numbers))} does not go with {path}: give a file, or numbers.")
    model, size = model_at(path) if path is not None else (model_of(numbers), NO_FILES)
    if keep_windows:
        model = model.with_windows_kept()
    if weights and parameters:
        raise InputError("--weights and --parameters tell the same: give one of them.")
    if weights:
        size = Weights(quantity.size_in_bytes("--weights", weights), "--weights")
    if parameters:
        bits = quantity.whole("--weight-bits", weight_bits)
        size = Weights(quantity.parameters("--parameters", parameters) * bits // 8, f"{parameters} of {bits} bits")
    on = Card(card, card_bytes(card), quantity.share("--usable", usable)) if card else None
    all_engines = engines(quantity.whole("--group-size", group_size))
    question = Question(model, size, quantity.whole("--tokens", tokens), on)
    found = answer(question, chosen(all_engines, engine, types, type_v))
    if as_json:
        typer.echo(json.dumps(to_json(found), indent=2))
    else:
        render(found, Console())
