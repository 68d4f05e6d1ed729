"""What mlx-lm's prompt-cache file is worth, in words and numbers."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from harness.checks.laboratory import Finding
from harness.checks.persist_evidence import EXIT_CODES, Verdict
from harness.checks.persist_mlx_engine import Generated
from harness.checks.persist_mlx_file import PromptCache

JOIN_TOKENS = 2
"""By how many the whole prompt may differ from its two parts, which are tokenised one by one."""


def judge(whole_tokens: int, computed_tokens: int, held_tokens: int | None) -> Verdict:
    """`computed_tokens`: of the prompt with the file; `held_tokens`: in the file, None: not known.

    works: what is in the file was not computed again.
    """
    spared = whole_tokens - computed_tokens
    if spared <= JOIN_TOKENS:
        return "not-restored"
    if held_tokens is None or abs(spared - held_tokens) <= JOIN_TOKENS:
        return "works"
    return "partial"


def finding(
    cold: Sequence[Generated], restored: Sequence[Generated], saved: PromptCache, file: Path, save_s: float | None
) -> Finding:
    """`save_s`: seconds of the process that wrote the file; None: another run wrote it."""
    whole, computed = cold[0].prompt_tokens, max(one.prompt_tokens for one in restored)
    verdict = judge(whole, computed, saved.tokens)
    slow, fast = [one.prompt_s for one in cold], [one.prompt_s for one in restored]
    if verdict == "works" and max(slow) < min(fast):
        verdict = "timing-differs"
    is_same = {one.text for one in cold} == {one.text for one in restored}
    held = "not told by the file" if saved.tokens is None else f"{saved.tokens:,}"
    words = (
        f"{_said(verdict)}: of a prompt of {whole:,} tokens mlx_lm.generate computed {computed:,} with the file "
        f"({held} tokens, {saved.kinds}, {_bits(saved)}), a new process each time. Computing the prompt took "
        f"{median(slow):,.3f} s without the file and {median(fast):,.3f} s with it, by its own clock. The answers were "
        f"{'the same' if is_same else _other(saved)}. {_kept(file, saved)} mlx_lm.server does not read such files."
    )
    return Finding(verdict, EXIT_CODES[verdict], words, _numbers(whole, computed, saved, slow, fast, is_same, save_s))


def _said(verdict: Verdict) -> str:
    if verdict == "works":
        return "A saved prompt cache comes back"
    if verdict == "partial":
        return "Not as many tokens are spared as the file holds"
    if verdict == "timing-differs":
        return "By tokens the file is used, but the prompt took as long as without it"
    return "The file is not used"


def _bits(saved: PromptCache) -> str:
    return "not quantised" if saved.kv_bits is None else f"{saved.kv_bits} bits in groups of {saved.kv_group_size}"


def _other(saved: PromptCache) -> str:
    why = "its numbers were added up in another order" if saved.kv_bits is None else "fewer KV bits round"
    return f"not the same, as may be where {why}"


def _kept(file: Path, saved: PromptCache) -> str:
    mode = stat.S_IMODE(file.stat().st_mode)
    kept = f"The file {file} of {saved.bytes:,} bytes stays; it is the conversation."
    if mode & 0o077:
        return f"{kept} Others have rights to it (mode {mode:04o}): take them away with chmod 600."
    return f"{kept} Nobody but you may read it (mode {mode:04o})."


def _numbers(
    whole: int,
    computed: int,
    saved: PromptCache,
    slow: Sequence[float],
    fast: Sequence[float],
    is_same: bool,
    save_s: float | None,
) -> dict[str, Any]:
    return {
        "prompt_tokens": whole,
        "restored_computed_tokens": computed,
        "saved_tokens": saved.tokens,
        "saved_bytes": saved.bytes,
        "saved_in_s": save_s,
        "cold_prompt_s": median(slow),
        "restored_prompt_s": median(fast),
        "same_answer": is_same,
        "kv_bits": saved.kv_bits,
        "cache_kinds": saved.kinds,
    }
