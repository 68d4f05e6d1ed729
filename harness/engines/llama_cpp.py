"""llama.cpp's own server, llama-server, with one model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from harness.engines.base import ChatMessages, Identity, Metric, Need, ResetOutcome
from harness.engines.control import Control, json_object
from harness.engines.fingerprint import PROBE_TEXT, fingerprint
from harness.engines.identity import explained
from harness.engines.llama_cpp_slots import NotOffered, SlotControl
from harness.engines.openai import ModelList, OpenAIEngine, texts
from harness.engines.replicas import replica_details
from harness.errors import TargetError

_UNKNOWN: Mapping[str, str] = MappingProxyType(
    {
        "prefix_caching": "llama-server does not tell whether it runs with --cache-prompt (the default) or with "
        "--no-cache-prompt: give identity.prefix_caching in the target file",
        "kv_dtype": "llama-server does not tell --cache-type-k and --cache-type-v (f16 if not given): give "
        "identity.kv_dtype in the target file",
        "cache_ram": "llama-server does not tell --cache-ram, the host memory in which what was in a slot lives on "
        "(8192 MiB if not given)",
    }
)

DIGITS = 6
"""The page is written with C++'s own precision for numbers: a count of 1,037,683 stands there as 1.03768e+06."""
METRICS = (
    Metric(
        "cached_prompt_tokens",
        ("llamacpp:prompt_tokens_cached_total",),
        "counter",
        "prompt tokens taken from a slot or from host memory; builds before autumn 2026 do not count them",
        digits=DIGITS,
    ),
    Metric(
        "computed_prompt_tokens",
        ("llamacpp:prompt_tokens_total",),
        "counter",
        "prompt tokens computed, without those from the cache; may come late while slots are busy",
        digits=DIGITS,
    ),
    Metric("generated_tokens", ("llamacpp:tokens_predicted_total",), "counter", "generated tokens", digits=DIGITS),
    Metric("running_requests", ("llamacpp:requests_processing",), "gauge", "busy slots"),
    Metric("waiting_requests", ("llamacpp:requests_deferred",), "gauge", "requests that wait for a slot"),
)
ADVICE: Mapping[Need, str] = MappingProxyType(
    {
        "caching": "start llama-server without --no-cache-prompt",
        "metrics": "start llama-server with --metrics",
        "reset": "start llama-server with --slot-save-path DIR and --cache-ram 0",
        "cached_tokens": "use a build of llama-server that reports timings.cache_n (from late 2025 on)",
    }
)


class LlamaCppEngine(OpenAIEngine):
    """Its cache: each slot keeps one token sequence, and a prompt reuses the longest common prefix with its slot."""

    name: str = "llama-cpp"
    metrics: tuple[Metric, ...] = METRICS
    advice: Mapping[Need, str] = ADVICE
    takes_token_ids: bool = True
    pins_slots: bool = True
    forces_length: bool = True
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
        meta = self.model_entry().get("meta") or {}
        slots: int = props["total_slots"]
        slot_tokens: int = props["default_generation_settings"]["n_ctx"]
        unknown = dict(_UNKNOWN)
        if slots > 1:
            unknown["kv_unified"] = (
                f"llama-server does not tell whether its {slots} slots share one KV buffer (--kv-unified)"
            )
            unknown["capacity_tokens"] = (
                f"{slot_tokens} tokens if the slots share one KV buffer (--kv-unified), {slots * slot_tokens} if each "
                "has its own (--no-kv-unified), which llama-server does not tell: give identity.capacity_tokens in the "
                "target file"
            )
        version = props.get("build_info")
        build = _commit(version)
        if build is None:
            unknown["build"] = (
                f"it was built without its commit (build_info is {version!r}): give identity.build in the target file"
            )
        if props.get("endpoint_metrics") is False:
            unknown["metrics"] = f"it counts nothing for others to read: {ADVICE['metrics']}"
        adapter, why_not = self._adapter()
        if why_not is not None:
            unknown["adapter"] = why_not
        identity = Identity(
            engine=self.name,
            model=self.model,
            version=version,
            build=build,
            model_path=props.get("model_path"),
            context_tokens=slot_tokens,
            capacity_tokens=slot_tokens if slots == 1 else None,
            granularity_tokens=1,
            slots=slots,
            template_fingerprint=fingerprint(props["chat_template"]) if "chat_template" in props else None,
            tokenizer_fingerprint=fingerprint([meta.get("n_vocab"), meta.get("vocab_type"), self._tokens(PROBE_TEXT)]),
            adapter=adapter,
            details={**texts(_told(props, meta)), **replica_details(self.target)},
            unknown=unknown,
        )
        return explained(identity, "this build of llama-server leaves it out")

    def _payload(
        self, prompt: Mapping[str, Any], output_tokens: int, cache_salt: str | None, slot: int | None
    ) -> dict[str, Any]:
        payload = {**super()._payload(prompt, output_tokens, cache_salt, slot), "ignore_eos": True}
        return payload if slot is None else {**payload, "id_slot": slot}

    def count_text(self, text: str) -> int | None:
        return len(self._tokens(text))

    def count_chat(self, messages: ChatMessages) -> int:
        return len(self.chat_tokens(messages))

    def chat_tokens(self, messages: ChatMessages, tools: Sequence[Mapping[str, Any]] = ()) -> list[int]:
        """Token ids of a chat's prompt, by the template and the tokeniser of the server; loads no slot."""
        url = f"{self.target.server_root}/apply-template"
        chat = {"messages": list(messages), **({"tools": list(tools)} if tools else {})}
        prompt = self.control.post_for_object(url, chat).get("prompt")
        if not isinstance(prompt, str):
            raise TargetError(f"POST {url} answered without a prompt; is this llama-server?")
        # With special tokens, as the server does for a chat: a BOS of the tokeniser is not in the rendered text.
        return self._tokens(prompt, add_special=True)

    def reset_cache(self) -> ResetOutcome:
        """Erase every slot; waits for those that are busy."""
        slots: int = self._props()["total_slots"]
        control = SlotControl(self.control)
        try:
            erased = sum(control.erase(slot) for slot in range(slots))
        except NotOffered as problem:
            return ResetOutcome(complete=False, message=f"nothing was erased: {problem}")
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

    def _adapter(self) -> tuple[str | None, str | None]:
        """The LoRA adapters at work, and why they are not known; both None: there is none."""
        response = self.control.get(f"{self.target.server_root}/lora-adapters")
        try:
            loaded = json.loads(response.content) if response.status_code == 200 else None
        except ValueError:
            loaded = None
        if not isinstance(loaded, list):
            why_not = "llama-server does not tell its LoRA adapters (--lora): give identity.adapter in the target file"
            return None, why_not
        at_work = [f"{one['path']} x {one['scale']:g}" for one in loaded if one["scale"]]
        return ", ".join(at_work) or None, None

    def _tokens(self, text: str, add_special: bool = False) -> list[int]:
        url = f"{self.target.server_root}/tokenize"
        body = {"content": text, "add_special": add_special, "parse_special": True}
        tokens = self.control.post_for_object(url, body).get("tokens")
        if not isinstance(tokens, list):
            raise TargetError(f"POST {url} answered without tokens; is this llama-server?")
        return tokens


def _told(props: Mapping[str, Any], meta: Mapping[str, Any]) -> dict[str, object]:
    told: dict[str, object] = {name: props.get(name) for name in ("model_alias", "model_ftype")}
    told |= {name: props.get(name) for name in ("endpoint_metrics", "endpoint_slots")}
    told["speculative"] = props["default_generation_settings"].get("params", {}).get("speculative.types")
    return told | {name: meta.get(name) for name in ("n_params", "n_ctx_train", "n_vocab", "size")}


def _commit(build_info: object) -> str | None:
    """The commit in a build_info such as b7123-0c1e57098."""
    found = re.fullmatch(r"b\d+-([0-9a-f]{7,40})", build_info) if isinstance(build_info, str) else None
    return found[1] if found else None
