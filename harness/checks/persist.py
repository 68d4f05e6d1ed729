"""`kvswarm persist` at a server: saves a slot, empties it, restores it, and asks what is still there each time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.checks import persist_note
from harness.checks.evict import refuse_replicas
from harness.checks.isolate import choose_prefix
from harness.checks.laboratory import Finding, Laboratory
from harness.checks.persist_evidence import Asked, Evidence, Role
from harness.checks.persist_finding import Story, finding, not_offered, not_taken, off
from harness.checks.persist_note import Note
from harness.checks.persist_slot import OwnSlot, take
from harness.checks.prompts import CHANCE_WORDS
from harness.engines.fingerprint import fingerprint
from harness.engines.llama_cpp import LlamaCppEngine
from harness.engines.llama_cpp_slots import NotRestored, SlotControl
from harness.errors import InputError, TargetError
from harness.workload.session import Message, Segment

ROUNDS = 3
"""Each with a prompt that nobody sent before, or with the one that was saved."""
WARM_UP_REQUESTS, WARM_UP_TOKENS = 3, 64


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command was called with."""

    prefix_tokens: int | None = None
    """Length of the prompt; None: what suits the target."""
    restore: str | None = None
    """A run that saved a slot: only restore what it saved."""
    slot_dir: Path | None = None
    """The server's folder for slots, if it is on this machine."""
    erase_others: bool = False

    def note(self, results: str) -> Note | None:
        """That of the run to restore. Raises InputError for what cannot be done at any target, RecordError."""
        persist_note.refuse_elsewhere(results)
        if self.restore is not None and self.prefix_tokens is not None:
            raise InputError("--prefix-tokens is of no use with --restore: the prompt is the one that was saved")
        if self.slot_dir is not None and not self.slot_dir.is_dir():
            raise InputError(
                f"--slot-dir {self.slot_dir} is no folder: give the one of --slot-save-path, or leave it out if that "
                "is on another machine"
            )
        return None if self.restore is None else persist_note.read(self.restore, results)[1]

    def options(self) -> Mapping[str, Any]:
        """As run.json keeps them."""
        return {**asdict(self), "slot_dir": None if self.slot_dir is None else str(self.slot_dir)}


def persist(laboratory: Laboratory, wish: Wish, note: Note | None) -> Finding:
    """Save and restore at the target; with a note, only restore.

    Raises InputError for a length that the target does not take, for slots that are others', and for a cache of another
    engine, model or tokeniser; TargetError if a request fails, or if somebody else gets into the slot.
    """
    engine = laboratory.engine
    if not isinstance(engine, LlamaCppEngine):
        return not_offered(engine.name)
    refuse_replicas(laboratory.target)
    control = SlotControl(engine.control)
    if not control.offered():
        return off()
    if note is not None:
        return _restored(laboratory, control, wish, note)
    return _whole(laboratory, control, wish)


def _whole(laboratory: Laboratory, control: SlotControl, wish: Wish) -> Finding:
    length = choose_prefix(laboratory, wish.prefix_tokens)
    head = laboratory.head_tokens if laboratory.lexicon.template.head_known else 0
    desk = Desk(laboratory, take(laboratory.target.url, control, wish.erase_others))
    desk.warm_up()
    story = Story(f"kvswarm-{laboratory.run_id}.bin", desk.slot.number)
    for number in range(ROUNDS):
        name = f"prefix {number}"
        prompt = laboratory.prompt((name, length - head))
        laboratory.group(2 * number)
        desk.ask("cold", prompt)
        desk.ask("warm", prompt)
        story.saved = desk.slot.save(story.file)
        note = Note(
            file=story.file,
            identity=persist_note.named(laboratory.identity),
            content_id=laboratory.content_id(name),
            tokens=length - head,
            prompt_fingerprint=_fingerprint(laboratory, prompt),
            saved_tokens=story.saved.tokens,
            process=control.started(),
        )
        persist_note.write(laboratory.folder, note)
        desk.empty()
        laboratory.group(2 * number + 1)
        desk.ask("erased", prompt)
        desk.empty()
        try:
            story.restored = desk.slot.restore(story.file)
        except NotRestored as refusal:
            return not_taken(refusal, story, wish.slot_dir)
        desk.ask("restored", prompt)
        desk.empty()
    if restarted := laboratory.restarted():
        return restarted
    return finding(desk.evidence(), story, wish.slot_dir, laboratory.engine.advice)


def _restored(laboratory: Laboratory, control: SlotControl, wish: Wish, note: Note) -> Finding:
    persist_note.refuse_others(note, persist_note.named(laboratory.identity), f"{wish.restore}")
    prompt = (Message("user", (Segment("user", note.content_id, note.tokens),)),)
    if note.prompt_fingerprint != _fingerprint(laboratory, prompt):
        raise InputError(
            f"The prompt of {wish.restore} makes other tokens here, though engine, model and tokeniser have the same "
            "names: restore it at the server that saved it, or save a new one"
        )
    persist_note.write(laboratory.folder, note)
    started = control.started()
    same = None if started is None or note.process is None else started == note.process
    story = Story(note.file, -1, saved_tokens=note.saved_tokens, same_process=same, again=True)
    desk = Desk(laboratory, take(laboratory.target.url, control, wish.erase_others))
    story.slot = desk.slot.number
    desk.warm_up()
    for number in range(ROUNDS):
        laboratory.group(number)
        desk.ask("erased", prompt)
        desk.empty()
        try:
            story.restored = desk.slot.restore(note.file)
        except NotRestored as refusal:
            return not_taken(refusal, story, wish.slot_dir)
        desk.ask("restored", prompt)
        desk.ask("warm", prompt)
        desk.empty()
    if restarted := laboratory.restarted():
        return restarted
    return finding(desk.evidence(), story, wish.slot_dir, laboratory.engine.advice)


class Desk:
    """Asks for prompts in one slot, and knows what it has put there."""

    def __init__(self, laboratory: Laboratory, slot: OwnSlot) -> None:
        self.slot = slot
        self._laboratory = laboratory
        self._held_tokens = 0
        self._prompt_tokens = 0
        self._asked: list[Asked] = []
        self._counted = False

    def warm_up(self) -> None:
        """The engine's counter is read from then on if an answer tells no cached tokens. Leaves the slot empty."""
        with self._laboratory.warming():
            for number in range(WARM_UP_REQUESTS):
                self.ask("cold", self._laboratory.prompt((f"warm-up {number}", WARM_UP_TOKENS)))
        self._counted = any(one.cached_tokens is None for one in self._asked)
        self._asked.clear()
        self.empty()

    def ask(self, role: Role, prompt: tuple[Message, ...]) -> None:
        """Raises TargetError if the request fails."""
        answer = self._laboratory.chat(role, prompt, slot=self.slot.number, counted=self._counted)
        if not answer.is_ok:
            raise TargetError(
                f"A request to {self._laboratory.target.url} failed ({answer.reply.status}): {answer.reply.error}. "
                "The check ended there"
            )
        # The one token of the answer was never computed, so it is not in the slot.
        self._held_tokens = self._prompt_tokens = answer.prompt_tokens
        self._asked.append(Asked(role, answer.cached_tokens, answer.ttft_ms))

    def empty(self) -> None:
        """Raises TargetError if the slot holds what is not ours."""
        self.slot.erase(self._held_tokens)
        self._held_tokens = 0

    def evidence(self) -> Evidence:
        return Evidence(tuple(self._asked), self._prompt_tokens, self._laboratory.head_tokens + CHANCE_WORDS)


def _fingerprint(laboratory: Laboratory, prompt: tuple[Message, ...]) -> str | None:
    ids = laboratory.tokens(prompt)
    return None if ids is None else fingerprint(ids)
