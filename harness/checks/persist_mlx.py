"""`kvswarm persist` at mlx-lm's commands: the file of mlx_lm.cache_prompt, read back by mlx_lm.generate."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from harness.checks import persist_mlx_file, persist_note
from harness.checks.labbook import labbook, write_runs
from harness.checks.laboratory import Finding
from harness.checks.outcome import as_json, render
from harness.checks.persist_mlx_engine import Generated, MlxLm
from harness.checks.persist_mlx_finding import finding
from harness.checks.persist_mlx_record import MlxRecording
from harness.checks.persist_note import Note
from harness.errors import InputError, TargetError
from harness.record.reader import RecordedRun
from harness.workload.content import content_id, words_text
from harness.workload.session import Segment
from harness.workload.words import CANDIDATES

FILE = "prompt-cache.safetensors"
USUAL_WORDS, QUESTION_WORDS = 1024, 8
ROUNDS = 2
WORDS = tuple(CANDIDATES[:512])


@dataclass(frozen=True, slots=True)
class MlxWish:
    """What the command was called with."""

    model: Path
    python: str = "python3"
    kv_bits: int | None = None
    kv_group_size: int = 64
    prefix_words: int | None = None
    """Length of the saved prompt in words of mostly one token; None: `USUAL_WORDS`."""
    restore: str | None = None
    """A run that saved a cache: only restore what it saved."""

    def check(self, results: str) -> None:
        """Raise InputError for what cannot be done with any model."""
        persist_note.refuse_elsewhere(results)
        if self.restore is not None and self.prefix_words is not None:
            raise InputError("--prefix-tokens is of no use with --restore: the prompt is the one that was saved")

    def options(self) -> Mapping[str, Any]:
        """As run.json keeps them."""
        return {
            "mlx_model": str(self.model),
            "mlx_python": self.python,
            "kv_bits": self.kv_bits,
            "kv_group_size": self.kv_group_size,
            "prefix_tokens": self.prefix_words,
            "restore": self.restore,
        }


def examine_mlx(wish: MlxWish, book: Path | None, results: str, in_json: bool) -> Finding:
    """As `harness.checks.examine.examine`, with a model's folder in the place of a target. Raises as `persist_mlx`."""
    wish.check(results)
    notebook = labbook(book)
    found, run = persist_mlx(wish, results)
    write_runs(notebook, "persist", [run], found)
    if in_json:
        typer.echo(as_json(found, run.folder.url))
    else:
        render(found, run.folder.url, f"persist: {run.manifest.targets[0].name} (mlx-lm's commands)", Console())
    return found


def persist_mlx(wish: MlxWish, results: str) -> tuple[Finding, RecordedRun]:
    """Save and restore, or only restore, each in processes of their own.

    Raises InputError for a model or an environment that cannot be used, and for a cache of another model, tokeniser or
    number of KV bits.
    """
    mlx = MlxLm(wish.python, wish.model, wish.kv_bits, wish.kv_group_size)
    identity = persist_mlx_file.model_identity(wish.model) | {
        "kv_bits": _text(wish.kv_bits),
        "kv_group_size": None if wish.kv_bits is None else _text(wish.kv_group_size),
    }
    file: Path | None = None
    if wish.restore is None:
        note = Note(
            file=FILE,
            identity=identity,
            content_id=content_id(secrets.token_hex(8), "prefix"),
            tokens=wish.prefix_words or USUAL_WORDS,
            saved_tokens=None,
        )
    else:
        folder, note = persist_note.read(wish.restore, results)
        persist_note.refuse_others(note, identity, wish.restore)
        file = folder / note.file
        _refuse_others(persist_mlx_file.read(file), identity, file)
    recording = MlxRecording(wish.model, identity, mlx.version(), results, wish.options())
    try:
        with recording:
            found = _examine(mlx, recording, note, file)
    except TargetError as problem:
        found = Finding("unanswered", 2, f"{problem}".removesuffix(".") + ".", {})
    return found, recording.run()


def _examine(mlx: MlxLm, recording: MlxRecording, note: Note, file: Path | None) -> Finding:
    """`file`: what another run saved; None: save it now."""
    prefix = words_text(WORDS, note.content_id, note.tokens).strip()
    question_id = content_id(recording.run_id, "question")
    question = words_text(WORDS, question_id, QUESTION_WORDS)
    path = [
        Segment("user", note.content_id, note.tokens),
        Segment("user", question_id, QUESTION_WORDS),
    ]
    # The first process compiles kernels, and brings the model's file into memory.
    recording.add("warm-up", "warmup", path[1:], mlx.generate(question.strip()), None)
    cold = [mlx.generate(prefix + question) for _ in range(ROUNDS)]
    _keep(recording, "cold", path, cold, 0)
    save_s = None
    if file is None:
        file = Path(recording.folder) / FILE
        save_s = mlx.cache_prompt(prefix, file)
    saved = persist_mlx_file.read(file)
    _refuse_others(saved, note.identity, file)
    persist_note.write(
        recording.folder,
        note.model_copy(update={"file": str(file.resolve()), "saved_tokens": saved.tokens}),
    )
    restored = [mlx.generate(question, file) for _ in range(ROUNDS)]
    _keep(recording, "restored", path, restored, 1)
    return finding(cold, restored, saved, file, save_s)


def _keep(recording: MlxRecording, name: str, path: list[Segment], answers: Sequence[Generated], turn: int) -> None:
    for answer in answers:
        recording.add(name, "measure", path, answer, turn)


def _refuse_others(saved: persist_mlx_file.PromptCache, identity: Mapping[str, str | None], file: Path) -> None:
    """Raise InputError, naming the field, if the file itself tells another model or number of KV bits."""
    told = {
        "model": saved.model,
        "kv_bits": _text(saved.kv_bits),
        "kv_group_size": _text(saved.kv_group_size),
    }
    for name, value in told.items():
        if value != identity[name]:
            raise InputError(
                f"The prompt cache {file} says {name} {value or 'none'}, and here it is {identity[name] or 'none'}: "
                "restore it with what made it, or save a new one"
            )


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
