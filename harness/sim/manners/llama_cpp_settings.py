"""What llama.cpp's server tells of its sampling settings, by default and for a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.cache.host_tier import single
from harness.sim.manners.llama_cpp_request import Asked, Body, Kind

_SAMPLING: Mapping[str, Any] = {
    "seed": 4294967295,
    "temperature": 0.8,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.1,
    "typical_p": 1.0,
    "repeat_last_n": 64,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": 64,
}
_MIROSTAT: Mapping[str, Any] = {
    "mirostat": 0,
    "mirostat_tau": 5.0,
    "mirostat_eta": 0.1,
    "adaptive_target": -1.0,
    "adaptive_decay": 0.9,
}
_SAMPLERS = ("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature")
_FORMATS: Mapping[Kind, str] = {"chat": "peg-native", "text": "Content-only", "native": "Content-only"}


def default_settings() -> dict[str, Any]:
    """As `/props` has them."""
    return _settings({}, -1, {}, chat_format="Content-only", reasoning_format="none")


def settings_of(asked: Asked, ends: Sequence[int] | None = None) -> dict[str, Any]:
    """Those of a request, as `/slots` has them.

    With `ends`, the tokens that end an answer, also the lists that an answer of `/completion` has.
    """
    chat = asked.kind == "chat"
    found = _settings(
        asked.body,
        asked.limit,
        asked.flags,
        chat_format=_FORMATS[asked.kind],
        reasoning_format="deepseek",
        generation_prompt="<|im_start|>assistant\n" if chat else "",
    )
    if ends is None:
        return found
    banned = [{"bias": None, "token": token} for token in ends] if asked.flags["ignore_eos"] else []
    lists: Mapping[str, Mapping[str, Any]] = {
        "dry_penalty_last_n": {"dry_sequence_breakers": ["\n", ":", '"', "*"]},
        "adaptive_decay": {"stop": asked.stops},
        "stream": {"logit_bias": banned},
        "min_keep": {"grammar": "", "grammar_lazy": False, "grammar_triggers": [], "preserved_tokens": []},
    }
    told: dict[str, Any] = {}
    for name, value in found.items():
        told |= {name: value, **lists.get(name, {})}
    return told


def _settings(
    body: Body,
    limit: int,
    flags: Mapping[str, bool],
    *,
    chat_format: str,
    reasoning_format: str,
    generation_prompt: str = "",
) -> dict[str, Any]:
    return {
        **{name: _number(body.get(name), default) for name, default in {**_SAMPLING, **_MIROSTAT}.items()},
        "max_tokens": limit,
        "n_predict": limit,
        "n_keep": 0,
        "n_discard": 0,
        "ignore_eos": flags.get("ignore_eos", False),
        "stream": flags.get("stream", False),
        "n_probs": 0,
        "min_keep": 0,
        "chat_format": chat_format,
        "reasoning_format": reasoning_format,
        "reasoning_in_content": False,
        "generation_prompt": generation_prompt,
        "samplers": list(_SAMPLERS),
        "speculative.types": "none",
        "timings_per_token": flags.get("timings_per_token", False),
        "post_sampling_probs": False,
        "backend_sampling": False,
        "lora": [],
    }


def _number(given: object, default: float) -> float:
    """What was asked for, if it is a number; fractions in the 32 bits that the server has for them."""
    value = default if isinstance(given, bool) or not isinstance(given, int | float) else given
    return single(value) if isinstance(default, float) else int(value)
