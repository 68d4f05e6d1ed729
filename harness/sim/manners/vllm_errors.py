"""vLLM's error bodies."""

from __future__ import annotations

from harness.sim.manners.fastapi import Refused, answer
from harness.sim.manners.openai import BadBody, Fault
from harness.sim.web import Answer


def error(status: int, message: str, kind: str, param: str | None) -> Answer:
    return answer({"error": {"message": message, "type": kind, "param": param, "code": status}}, status)


def bad(message: str, param: str, value: object = None) -> Refused:
    """A parameter that vLLM does not take; its message ends with what it was."""
    told = "" if value is None else f", value={value}"
    return Refused(error(400, f"{message} (parameter={param}{told})", "BadRequestError", param))


def not_simulated(what: str) -> Refused:
    return Refused(error(400, f"The simulated engine does not know {what}.", "BadRequestError", None))


def no_such_model(name: str, served: str) -> Refused:
    message = f"The model `{name}` does not exist. Valid aliases: {served}."
    return Refused(error(404, message, "NotFoundError", "model"))


def too_long(prompt_tokens: int, output_tokens: int, context_tokens: int) -> Refused:
    """The prompt is counted only so far that it is known to be too long."""
    begins = f"This model's maximum context length is {context_tokens} tokens. However, "
    if prompt_tokens > context_tokens:
        least = context_tokens + 1
        ends = (
            f"your prompt contains at least {least} input tokens, which exceeds this limit even without any output "
            "tokens. Please reduce the length of the input prompt."
        )
    else:
        least = context_tokens + 1 - output_tokens
        ends = (
            f"you requested {output_tokens} output tokens and your prompt contains at least {least} input tokens, for "
            f"a total of at least {context_tokens + 1} tokens. Please reduce the length of the input prompt or the "
            "number of requested output tokens."
        )
    return bad(begins + ends, "input_tokens", least)


def bad_body(problem: BadBody) -> Answer:
    faults = [_told(fault) for fault in problem.faults]
    number = f"{len(faults)} validation error{'s' if len(faults) > 1 else ''}"
    lines = "".join(f"\n  {fault}" for fault in faults)
    return error(400, f"{number}:{lines}", "Bad Request", str(faults[0]["loc"]))


def _told(fault: Fault) -> dict[str, object]:
    """Objects are told by their size alone, and places with dots."""
    given = fault["input"]
    told = f"<dict of {len(given)} items>" if isinstance(given, dict) else given
    return {**fault, "loc": ".".join(map(str, fault["loc"])), "input": told}
