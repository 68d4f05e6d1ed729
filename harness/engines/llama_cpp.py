"""llama.cpp's own server, llama-server, with one model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from harness.engines.base import ChatMessages, HitCounters, Identity, ResetOutcome
from harness.engines.control import Control, answer_in_short, json_object
from harness.engines.openai import ModelList, OpenAIEngine, texts
from harness.errors import TargetError

PROBE_TEXT = " The quick brown fox, 12345 times; naïve café 東京 \n\tdef f(x): return x**2\n"
"""Its token ids are part of the tokeniser's fingerprint: words, digits, accents, another script, white space, code."""

_UNTOLD = {
    "prefix_caching": "llama-server does not tell whether it runs with --cache-prompt (the default) or without",
    "cache_ram": "llama-server does not tell --cache-ram, the host memory in which evicted slots live on",
    "kv_dtype": "llama-server does not tell --cache-type-k and --cache-type-v",
}


class LlamaCppEngine(OpenAIEngine):
    """Its cache: each slot keeps one token sequence, and a prompt reuses the longest common prefix with its slot."""

    name: str = "llama-cpp"
    hit_counters: HitCounters | None = HitCounters(
        cached=("llamacpp:prompt_tokens_cached_total",),
        prompt=("llamacpp:prompt_tokens_total",),
        prompt_includes_cached=False,
    )
    # Its answers promise to keep the connection alive, but it closes it after each streamed one: a request sent on it
    # in that moment would be lost.
    request_headers: Mapping[str, str] = MappingProxyType({"Connection": "close"})

    @classmethod
    def answers(cls, control: Control, listed: ModelList) -> bool:
        if listed.server == "llama.cpp" or any(model.get("owned_by") == "llamacpp" for model in listed.models):
            return True
        response = control.get(f"{control.target.server_root}/props")
        try:
            return "build_info" in json_object(response)
        except TargetError:
            return False

    def identify(self) -> Identity:
        props = self._props()
        entry = self.model_entry()
        meta = entry.get("meta") or {}
        slots: int = props["total_slots"]
        slot_tokens: int = props["default_generation_settings"]["n_ctx"]
        untold = dict(_UNTOLD)
        if slots > 1:
            untold["capacity_tokens"] = (
                f"llama-server does not tell whether its {slots} slots share one KV buffer (--kv-unified): "
                f"{slot_tokens} tokens if they do, {slots} times that if not"
            )
        return Identity(
            engine=self.name,
            model=self.model,
            version=props.get("build_info"),
            context_tokens=slot_tokens,
            capacity_tokens=slot_tokens if slots == 1 else None,
            granularity_tokens=1,
            slots=slots,
            template_fingerprint=_fingerprint(props["chat_template"]) if "chat_template" in props else None,
            tokenizer_fingerprint=_fingerprint([meta.get("n_vocab"), meta.get("vocab_type"), self._tokens(PROBE_TEXT)]),
            details=texts({**_told(props, meta), **untold}),
        )

    def chat_payload(self, messages: ChatMessages, output_tokens: int) -> dict[str, Any]:
        """Body of a streaming chat request that yields exactly `output_tokens` tokens, if the context has room."""
        return {**super().chat_payload(messages, output_tokens), "ignore_eos": True}

    def count_text(self, text: str) -> int | None:
        return len(self._tokens(text))

    def count_chat(self, messages: ChatMessages) -> int:
        return len(self.chat_tokens(messages))

    def chat_tokens(self, messages: ChatMessages) -> list[int]:
        """Token ids of a chat's prompt, by the template and the tokeniser of the server; loads no slot."""
        url = f"{self.target.server_root}/apply-template"
        prompt = self.control.post_for_object(url, {"messages": list(messages)}).get("prompt")
        if not isinstance(prompt, str):
            raise TargetError(f"POST {url} answered without a prompt; is this llama-server?")
        # With special tokens, as the server does for a chat: a BOS of the tokeniser is not in the rendered text.
        return self._tokens(prompt, add_special=True)

    def is_idle(self, metrics: Mapping[str, float]) -> bool | None:
        running = metrics.get("llamacpp:requests_processing")
        queued = metrics.get("llamacpp:requests_deferred")
        if running is None or queued is None:
            return None
        return running == 0 and queued == 0

    def reset_cache(self) -> ResetOutcome:
        """Erase every slot; waits for those that are busy."""
        slots: int = self._props()["total_slots"]
        erased = 0
        for slot in range(slots):
            response = self.control.post(f"{self.target.server_root}/slots/{slot}?action=erase", {})
            if response.status_code == 501:
                return ResetOutcome(
                    complete=False,
                    message="nothing was erased: llama-server must be started with --slot-save-path DIR to erase slots",
                )
            if response.status_code != 200:
                raise TargetError(
                    f"slot {slot} could not be erased: {response.url} answered {answer_in_short(response)}"
                )
            erased += json_object(response).get("n_erased", 0)
        return ResetOutcome(
            complete=False,
            message=f"{erased} tokens in {slots} slots were erased; what llama-server keeps in host memory is still "
            "there, unless it was started with --cache-ram 0, which it does not tell",
        )

    def _props(self) -> dict[str, Any]:
        url = f"{self.target.server_root}/props"
        props = self.control.get_object(url)
        settings = props.get("default_generation_settings")
        if not isinstance(props.get("total_slots"), int) or not isinstance(settings, dict) or "n_ctx" not in settings:
            raise TargetError(
                f"GET {url} tells no total_slots or n_ctx: the target must be llama-server with one model, not a router"
            )
        return props

    def _tokens(self, text: str, add_special: bool = False) -> list[int]:
        url = f"{self.target.server_root}/tokenize"
        body = {"content": text, "add_special": add_special, "parse_special": True}
        tokens = self.control.post_for_object(url, body).get("tokens")
        if not isinstance(tokens, list):
            raise TargetError(f"POST {url} answered without tokens; is this llama-server?")
        return tokens


def _told(props: Mapping[str, Any], meta: Mapping[str, Any]) -> dict[str, object]:
    told: dict[str, object] = {name: props.get(name) for name in ("model_path", "model_alias", "model_ftype")}
    told |= {name: props.get(name) for name in ("endpoint_metrics", "endpoint_slots")}
    return told | {name: meta.get(name) for name in ("n_params", "n_ctx_train", "n_vocab", "size")}


def _fingerprint(value: object) -> str:
    """The first 16 hex digits of sha-256 over the value as JSON."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
