"""What a check saved, and of whom: a note beside the run's rows, by which a later check restores it or refuses to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.engines.base import Identity
from harness.errors import InputError
from harness.record.reader import open_run

NAME = "saved.json"
FIELDS = (
    "engine",
    "model",
    "version",
    "build",
    "tokenizer_fingerprint",
    "template_fingerprint",
    "kv_dtype",
    "adapter",
)
"""Of the identity: what must be the same for a cache that is restored."""
DETAILS = ("model_ftype", "n_params", "n_vocab", "size")
"""The same of its details: what llama-server tells of the model's file."""


class Note(BaseModel):
    """Neither the cache nor the words of its prompt."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    """llama-server: its name in the server's folder; mlx-lm: its path."""
    identity: dict[str, str | None]
    """By `named`, or mlx-lm's by `harness.checks.persist_mlx_file`."""
    content_id: int
    """What the prompt's text is made from."""
    tokens: int
    """Tokens of that text, or words where nobody counts before."""
    prompt_fingerprint: str | None = None
    """Of the prompt's token ids; null: the engine does not show them."""
    saved_tokens: int | None
    process: str | None = None
    """A word of the process that saved it; see `harness.engines.llama_cpp_slots.SlotControl.started`."""


def named(identity: Identity) -> dict[str, str | None]:
    """What a cache is bound to; None: not told."""
    fields = {name: getattr(identity, name) for name in FIELDS}
    return fields | {name: identity.details.get(name) for name in DETAILS}


def refuse_others(note: Note, found: Mapping[str, str | None], run: str) -> None:
    """Raise InputError, naming the field, if the cache is of another engine, model or tokeniser than `found`."""
    for name, saved in note.identity.items():
        now = found.get(name)
        if saved != now:
            raise InputError(
                f"The cache of {run} was saved with {name} {_shown(saved)}, and here {name} is {_shown(now)}: "
                "restore it where it was made, or save a new one"
            )


def refuse_elsewhere(results: str) -> None:
    """Raise InputError for a place where nobody could keep the note from others' eyes."""
    if "://" in results:
        raise InputError(
            f"--results is {results}: persist keeps a note that only you can read beside its rows, so give a folder "
            "on this machine"
        )


def write(run: str, note: Note) -> None:
    """Into the run's directory, mode 0600. Raises InputError if it cannot be written."""
    path = Path(run) / NAME
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(note.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}; make room or access") from error


def read(run: str, results: str) -> tuple[Path, Note]:
    """The directory of a run that is named as for a report, and its note. Raises InputError, RecordError."""
    folder = Path(open_run(run, results, strict=False).folder.path)
    path = folder / NAME
    try:
        return folder, Note.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{folder} has no {NAME}: name a run of kvswarm persist that saved a cache") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(key) for key in first["loc"]) or "it"
        raise InputError(f"{path} is damaged: {where}: {first['msg']}; save a new cache") from None


def _shown(value: str | None) -> str:
    return "none" if value is None else repr(value)
