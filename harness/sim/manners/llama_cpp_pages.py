"""What llama.cpp's server tells of itself: its model, its settings, its slots."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.embedded.tiny_tokenizer import CHAT_TEMPLATE, END_OF_TEXT, TURN_END
from harness.sim.generation import Generation
from harness.sim.manners.llama_cpp_request import Asked
from harness.sim.manners.llama_cpp_settings import default_settings, settings_of
from harness.sim.manners.llama_cpp_timings import admitted
from harness.sim.scheduler import SlotState

BUILD = "b11549-simulated"
"""What `build_info` and `system_fingerprint` say: the build whose manners these are, and that it is none."""
BATCH_TOKENS = 2048

_CAPS = (
    "supports_object_arguments",
    "supports_parallel_tool_calls",
    "supports_preserve_reasoning",
    "supports_reasoning_effort",
    "supports_string_content",
    "supports_system_role",
    "supports_tool_calls",
    "supports_tools",
    "supports_typed_content",
)
_HAS = ("supports_string_content", "supports_system_role")


@dataclass(frozen=True, slots=True)
class Server:
    """What does not change while it runs."""

    alias: str
    model_path: str
    slots: int
    slot_tokens: int
    """Context of each slot."""
    vocabulary_size: int
    metrics: bool
    media_marker: str


def new_media_marker() -> str:
    """Another one for each start."""
    return f"<__media_{secrets.token_hex(16)}__>"


def models(server: Server, now_s: int) -> dict[str, Any]:
    """GET /v1/models. A simulated model has no weights, so what would tell their number is null."""
    old = {
        "name": server.alias,
        "model": server.alias,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": [""],
        "capabilities": ["completion"],
        "parameters": "",
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "",
            "families": [""],
            "parameter_size": "",
            "quantization_level": "",
        },
    }
    meta = {
        "vocab_type": 2,
        "n_vocab": server.vocabulary_size,
        "n_ctx": server.slot_tokens,
        "n_ctx_train": server.slot_tokens,
        "n_embd": None,
        "n_params": None,
        "size": None,
        "ftype": "simulated",
    }
    model = {
        "id": server.alias,
        "aliases": [server.alias],
        "tags": [],
        "object": "model",
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "created": now_s,
        "owned_by": "llamacpp",
        "meta": meta,
    }
    return {"models": [old], "object": "list", "data": [model]}


def props(server: Server) -> dict[str, Any]:
    """GET /props."""
    return {
        "default_generation_settings": {"params": default_settings(), "n_ctx": server.slot_tokens},
        "total_slots": server.slots,
        "model_alias": server.alias,
        "model_ftype": "simulated",
        "model_path": server.model_path,
        "modalities": {"vision": False, "video": False, "audio": False},
        "media_marker": server.media_marker,
        "endpoint_slots": True,
        "endpoint_props": False,
        "endpoint_metrics": server.metrics,
        "ui": False,
        "ui_settings": {},
        "chat_template": CHAT_TEMPLATE,
        "chat_template_caps": {name: name in _HAS for name in _CAPS},
        "bos_token": END_OF_TEXT,
        "eos_token": TURN_END,
        "build_info": BUILD,
        "is_sleeping": False,
        "cors_proxy_enabled": False,
    }


def slot(state: SlotState, slot_tokens: int) -> Mapping[str, Any]:
    """One slot of GET /slots. What was reused is told only while an answer is under way."""
    at_work = state.generation
    told = {"id": state.number, "n_ctx": slot_tokens, "speculative": False, "is_processing": at_work is not None}
    if not isinstance(state.last, Asked):
        return told
    computed, cached, next_token = _work(at_work)
    return {
        **told,
        "id_task": state.last.task,
        "n_prompt_tokens": state.held_tokens if at_work is None else _held(at_work),
        "n_prompt_tokens_processed": computed,
        "n_prompt_tokens_cache": cached,
        "params": settings_of(state.last),
        "next_token": [next_token],
    }


def _work(generation: Generation | None) -> tuple[int, int, Mapping[str, Any]]:
    """Computed and reused tokens of the prompt, and what is to come."""
    token: dict[str, Any] = {"has_next_token": False, "has_new_line": False, "n_remain": -1, "n_decoded": 0}
    if generation is None:
        return 0, 0, token
    said = len(generation.output_ids)
    token["n_remain"] = generation.max_tokens - said
    if not said:
        return 0, 0, token
    cached = admitted(generation)[1]
    return len(generation.prompt_ids) - cached, cached, {**token, "has_next_token": True, "n_decoded": said}


def _held(generation: Generation) -> int:
    """Tokens that are there, and those that the step under way computes."""
    said = len(generation.output_ids)
    prompt = len(generation.prompt_ids)
    return prompt + said if said else min(prompt, generation.prefilled_tokens + BATCH_TOKENS)
