"""SGLang's error bodies."""

from __future__ import annotations

from harness.sim.manners.fastapi import Refused, answer
from harness.sim.manners.openai import BadBody
from harness.sim.web import Answer


def error(status: int, message: str, kind: str) -> Answer:
    return answer({"object": "error", "message": message, "type": kind, "param": None, "code": status}, status)


def bad(message: str) -> Refused:
    return Refused(error(400, message, "BadRequestError"))


def not_simulated(what: str) -> Refused:
    return bad(f"The simulated engine does not know {what}.")


def too_long(prompt_tokens: int, output_tokens: int, context_tokens: int) -> Refused:
    if prompt_tokens >= context_tokens:
        return bad(
            f"The input ({prompt_tokens} tokens) is longer than the model's context length ({context_tokens} tokens)."
        )
    total = prompt_tokens + output_tokens
    return bad(
        f"Requested token count exceeds the model's maximum context length of {context_tokens} tokens. You requested a "
        f"total of {total} tokens: {prompt_tokens} tokens from the input messages and {output_tokens} tokens for the "
        "completion. Please reduce the number of tokens in the input messages or the completion to fit within the "
        "limit."
    )


def bad_body(problem: BadBody) -> Answer:
    """Without the place in SGLang's source that the real one adds."""
    number = f"{len(problem.faults)} validation error{'s' if len(problem.faults) > 1 else ''}"
    lines = "".join(f"\n  {dict(fault)}" for fault in problem.faults)
    return error(400, f"{number}:{lines}", "Bad Request")
