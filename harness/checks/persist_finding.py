"""What a saved cache is worth, in words and numbers."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.checks.laboratory import Finding
from harness.checks.persist_evidence import EXIT_CODES, Evidence, Role, Verdict, judge
from harness.engines.base import Need
from harness.engines.llama_cpp_slots import SWITCH, Moved, NotRestored

INSTEAD: Mapping[str, str] = {
    "vllm": "vLLM has no call that writes its prefix cache to a file or reads one, and the cache ends with the "
    "process. What it has instead is a tier behind it: --kv-offloading-size (host memory, which ends with the process, "
    "too) or a KV connector such as LMCache, which can keep blocks on a disk. This check does not look at those",
    "sglang": "SGLang has no call that writes its prefix cache to a file or reads one, and the cache ends with the "
    "process. What it has instead is --enable-hierarchical-cache with --hicache-storage-backend, which keeps pages "
    "outside of it. This check does not look at that",
    "mlx-lm": "mlx_lm.server neither writes nor reads prompt-cache files. What mlx-lm has instead are the commands "
    "mlx_lm.cache_prompt and mlx_lm.generate, which do: kvswarm persist --mlx-model DIR checks those",
    "openai": "The OpenAI API has no call that saves a cache, and kvswarm knows no other one of what answers here",
}
_WHO: Mapping[Role, str] = {
    "cold": "the first request",
    "warm": "a warm one",
    "erased": "one in an emptied slot",
    "restored": "one in the restored slot",
}


@dataclass(slots=True)
class Story:
    """What was saved and restored, as far as it has come."""

    file: str
    slot: int
    saved: Moved | None = None
    """None: another run saved it."""
    restored: Moved | None = None
    saved_tokens: int | None = None
    """By the note of another run."""
    again: bool = False
    """Another run saved it."""
    same_process: bool | None = None
    """Whether the process that restores is the one that saved; None: not known, or of course."""


def not_offered(engine: str) -> Finding:
    """For an engine that saves nothing."""
    return Finding("not-offered", EXIT_CODES["not-offered"], f"{INSTEAD[engine]}.", {})


def off() -> Finding:
    """For a llama-server without a folder for slots."""
    sentence = (
        f"Slots are neither saved nor restored nor erased here (501): start llama-server with {SWITCH}, a folder that "
        "nobody else may read, and under umask 077."
    )
    return Finding("off", EXIT_CODES["off"], sentence, {})


def not_taken(refusal: NotRestored, story: Story, slot_dir: Path | None) -> Finding:
    """For a file that the server refuses."""
    sentence = (
        f"The slot was not restored: {refusal}. llama-server says so of a file that is not there or not whole, of one "
        "of another model or another --cache-type-k or -v, and where a slot has not the context for it."
    )
    kept = "" if story.again else f" {_kept(story, slot_dir)}"
    return Finding("not-restored", EXIT_CODES["not-restored"], f"{sentence}{kept}", _numbers(None, story))


def finding(shown: Evidence, story: Story, slot_dir: Path | None, advice: Mapping[Need, str]) -> Finding:
    """The verdict over all rounds."""
    verdict = judge(shown)
    clock = "" if verdict == "no-hits" else _clock(shown, story)
    words = f"{_said(verdict, shown, advice)}{_process(story)}{clock} {_kept(story, slot_dir)}"
    return Finding(verdict, EXIT_CODES[verdict], words, _numbers(shown, story))


def _said(verdict: Verdict, shown: Evidence, advice: Mapping[Need, str]) -> str:
    of = f"of a prompt of {shown.prompt_tokens:,} tokens "
    all_counts = of + "; ".join(_hit(shown, role) for role in _WHO if shown.counts(role))
    if verdict == "unseen":
        remedy = advice.get("cached_tokens", "see whether the server has an option for it")
        return (
            f"Whether a restored slot is used cannot be told: nobody counts cached tokens ({remedy}), and the clock "
            "shows no clear difference."
        )
    if verdict == "no-hits":
        remedy = advice.get("caching", "start the server with prefix caching on")
        return f"Nothing is reused, so a restored slot is of no use: {of}{_hit(shown, 'warm')}; {remedy}."
    if verdict == "not-erased":
        return f"Nothing can be said: {all_counts}, so a hit after the restore would prove nothing."
    if verdict == "timing-differs":
        return f"By tokens a restored slot is used, but the first token came as late as without it: {all_counts}."
    if verdict == "partial":
        return f"Only a part of a restored slot is used: {all_counts}."
    if not shown.counted:
        used = "is used" if verdict == "works" else "is not used"
        return f"By the clock alone, as nobody counts cached tokens, a restored slot {used}."
    if verdict == "works":
        return f"A saved slot comes back: {all_counts}."
    return f"A restored slot is not used: {all_counts}."


def _hit(shown: Evidence, role: Role) -> str:
    counts = shown.counts(role)
    least, most = min(counts), max(counts)
    return f"{_WHO[role]} hit {least:,} tokens" if least == most else f"{_WHO[role]} hit {least:,} to {most:,} tokens"


def _process(story: Story) -> str:
    if not story.again or story.same_process is None:
        return ""
    if story.same_process:
        return " The server is still the process that saved it: it was not started again in between."
    return " Another process of the server restored it than the one that saved it."


def _clock(shown: Evidence, story: Story) -> str:
    """What it buys, as a further sentence."""
    empty, warm, restored = shown.ttft_ms("erased"), shown.ttft_ms("warm"), shown.ttft_ms("restored")
    if shown.quick is None or empty is None or warm is None or restored is None or story.restored is None:
        return " By the clock alone nothing can be said." if shown.counted else ""
    return (
        f" By the clock the first token came after {empty:,.1f} ms in an emptied slot, {warm:,.1f} ms in a warm one "
        f"and {restored:,.1f} ms in a restored one, after {story.restored.ms:,.1f} ms for the restoring."
    )


def _kept(story: Story, slot_dir: Path | None) -> str:
    """Where the file is, how large, and who may read it."""
    moved = story.saved or story.restored
    size = "" if moved is None else f" of {moved.bytes:,} bytes"
    kept = (
        f"The file {story.file}{size} stays in the server's folder, as llama-server has no call to delete one: remove "
        "it there. Such a file is the conversation."
    )
    if slot_dir is None:
        return kept
    path = slot_dir / story.file
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        return f"{kept} In {slot_dir} it cannot be looked at ({error.strerror or error}): is that --slot-save-path?"
    if mode & 0o077:
        return (
            f"{kept} Others on that machine have rights to it (mode {mode:04o}): start llama-server under umask 077, "
            "and see who may enter the folder."
        )
    return f"{kept} Nobody but its owner may read it (mode {mode:04o})."


def _numbers(shown: Evidence | None, story: Story) -> dict[str, Any]:
    numbers: dict[str, Any] = {"slot": story.slot, "file": story.file}
    if shown is not None:
        numbers["prompt_tokens"] = shown.prompt_tokens
        for role in _WHO:
            numbers[f"{role}_cached_tokens"] = shown.cached_tokens(role)
            numbers[f"{role}_ttft_ms"] = shown.ttft_ms(role)
    numbers["saved_tokens"] = story.saved_tokens if story.saved is None else story.saved.tokens
    for name, moved in (("saved", story.saved), ("restored", story.restored)):
        if moved is not None:
            numbers |= {f"{name}_tokens": moved.tokens, f"{name}_bytes": moved.bytes, f"{name}_in_ms": moved.ms}
    return numbers | {"same_process": story.same_process}
