"""The usage that SGLang reports."""

from __future__ import annotations

from harness.sim.manners.openai import Asked
from harness.sim.options import SimOptions


def usage(asked: Asked, options: SimOptions, output_tokens: int, completion_details: bool = True) -> dict[str, object]:
    """With so many tokens of the answer. `completion_details`: the field of nearly that name is there."""
    prompt_tokens = len(asked.prompt_ids)
    details = {"cached_tokens": asked.cached_tokens or 0} if options.report_cached else None
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + output_tokens,
        "completion_tokens": output_tokens,
        "prompt_tokens_details": details,
        "reasoning_tokens": 0,
        **({"completion_tokens_details": None} if completion_details else {}),
    }


def said_tokens(asked: Asked) -> int:
    """The answer's tokens; none where none were asked for, though the prompt was computed."""
    return min(len(asked.output_ids), asked.asked_tokens)
