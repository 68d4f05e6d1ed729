"""`kvswarm persist`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.errors import InputError


def persist(
    target: Annotated[
        str, typer.Option(help="OpenAI base URL (http://host:port/v1), or a file in scenarios/targets.")
    ] = "",
    mlx_model: Annotated[
        Path | None, typer.Option(help="In the place of a target: a model's folder, for mlx-lm's prompt-cache files.")
    ] = None,
    model: Annotated[str, typer.Option(help="Model to ask for; empty: the server's only or first one.")] = "",
    prefix_tokens: Annotated[
        int | None, typer.Option(min=1, help="Length of the prompt; default: what suits the target.")
    ] = None,
    restore: Annotated[
        str | None, typer.Option(help="Only restore what this run saved (its directory or id), as after a restart.")
    ] = None,
    slot_dir: Annotated[
        Path | None, typer.Option(help="The folder of --slot-save-path, if it is on this machine: who may read it.")
    ] = None,
    erase_others: Annotated[
        bool, typer.Option("--erase-others", help="Use a slot even if it holds somebody's conversation, which is lost.")
    ] = False,
    mlx_python: Annotated[str, typer.Option(help="The Python of the environment that has mlx-lm.")] = "python3",
    kv_bits: Annotated[
        int | None, typer.Option(min=1, help="mlx-lm: bits of a quantised cache; default: not quantised.")
    ] = None,
    kv_group_size: Annotated[int, typer.Option(min=1, help="mlx-lm: numbers that share a scale.")] = 64,
    labbook: Annotated[Path | None, typer.Option(help="File that gets one JSON line with the verdict.")] = None,
    results: Annotated[str, typer.Option(help="Where the run is written.")] = "results",
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Save a cache, empty it, restore it, as after a restart: is it used again, and what does that save?

    Exit code: 0 it is, 1 it is not, or not in whole, 2 cannot be told.
    """
    from harness.checks.examine import examine
    from harness.checks.persist import Wish
    from harness.checks.persist import persist as run_persist
    from harness.checks.persist_mlx import MlxWish, examine_mlx

    if bool(target) == (mlx_model is not None):
        raise InputError("Give a server with --target, or the folder of a model with --mlx-model, one of the two")
    if mlx_model is not None:
        if erase_others or slot_dir is not None or model:
            raise InputError(
                "--erase-others, --slot-dir and --model are of no use with --mlx-model: no server is asked"
            )
        mlx = MlxWish(mlx_model, mlx_python, kv_bits, kv_group_size, prefix_tokens, restore)
        raise typer.Exit(examine_mlx(mlx, labbook, results, as_json).exit_code)
    if kv_bits is not None:
        raise InputError("--kv-bits is of no use with --target: it is for mlx-lm's prompt-cache files")
    wish = Wish(prefix_tokens, restore, slot_dir, erase_others)
    note = wish.note(results)
    finding = examine(
        "persist",
        target,
        model,
        labbook,
        results,
        wish.options(),
        lambda laboratory: run_persist(laboratory, wish, note),
        as_json,
    )
    raise typer.Exit(finding.exit_code)
