"""mlx-lm's own server, mlx_lm.server: no metrics, no reset, no tokeniser; only `usage` shows what its cache did."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from harness.engines.base import Identity, Need, ResetOutcome
from harness.engines.control import Control, answer_in_short, json_object
from harness.engines.openai import ModelList, OpenAIEngine, list_models, no_such_model, texts
from harness.engines.target import Target
from harness.errors import TargetError

LAUNCHED = "default_model"
"""The name by which the server takes the model that it was started with. Any other name makes it load that one."""

_HEALTH = (b'{"status": "ok"}', b'{"status": "unavailable"}')
_BAN = -100.0
"""Added to the logits of the tokens that end an answer."""

_BY_HAND = {
    "model_path": "lists the models that it could load, and tells which one it was started with only if that is a "
    "folder",
    "context_tokens": "sets no limit and does not tell the model's",
    "capacity_tokens": "limits its cache by --prompt-cache-size and --prompt-cache-bytes, not by tokens",
    "prefix_caching": "does not tell --prompt-cache-size, and 0 turns its cache off",
    "kv_dtype": "does not tell --kv-bits (without it, the model's type)",
    "template_fingerprint": "does not show the chat template",
    "tokenizer_fingerprint": "has no call that tokenises",
    "adapter": "does not tell --adapter-path",
}
_NOWHERE = {
    "slots": "has none; it does not tell --decode-concurrency (32 if not given), the number of answers that it "
    "generates at once",
    "prompt_cache_size": "does not tell --prompt-cache-size, the number of prompts that it keeps (10 if not given)",
    "prompt_cache_bytes": "does not tell --prompt-cache-bytes (no limit if not given)",
}
_UNKNOWN = {
    **{name: f"mlx_lm.server {why}: give identity.{name} in the target file" for name, why in _BY_HAND.items()},
    **{name: f"mlx_lm.server {why}" for name, why in _NOWHERE.items()},
}
_LENGTH_IS_FREE = (
    "answers may be shorter than asked for, as mlx_lm.server has no ignore_eos: list the ids of the tokens that end an "
    "answer as eos_token_ids in the target file, and they are banned"
)
_NO_CACHED_TOKENS = "use an mlx-lm that reports usage.prompt_tokens_details (from spring 2026 on)"

ADVICE: Mapping[Need, str] = MappingProxyType(
    {
        "caching": "start mlx_lm.server with a --prompt-cache-size above 0",
        "cached_tokens": _NO_CACHED_TOKENS,
        "metrics": "mlx_lm.server has no metrics page; its hits are in the usage of each request",
        "reset": "restart mlx_lm.server before the run",
    }
)


class MlxLmEngine(OpenAIEngine):
    """Its cache keeps whole prompts in a trie, and a prompt reuses the longest prefix that it shares with one."""

    name: str = "mlx-lm"
    advice: Mapping[Need, str] = ADVICE

    def __init__(self, target: Target, model: str) -> None:
        if "metrics_urls" not in target.model_fields_set:  # it has no such page
            target = target.model_copy(update={"metrics_urls": ()})
        super().__init__(target, model)
        self.forces_length = bool(target.eos_token_ids)

    @classmethod
    def answers(cls, control: Control, listed: ModelList) -> bool:
        """It is a server of Python's standard library, with a health page in Python's JSON and plain 404s."""
        if not re.match(r"BaseHTTP/\S+ Python/", listed.server) or any("owned_by" in model for model in listed.models):
            return False
        root = control.target.server_root
        if control.get(f"{root}/health").content not in _HEALTH:
            return False
        absent = control.get(f"{root}/metrics")
        return absent.status_code == 404 and absent.content == b"Not Found"

    @classmethod
    def model_name(cls, target: Target, listed: ModelList) -> str:
        """The launched model, whatever is listed: the list has all models in the server's hub cache."""
        if target.model is None or target.model == LAUNCHED:
            return LAUNCHED
        if listed.find(target.model) is None:
            raise TargetError(
                f"{no_such_model(target, target.model, listed)}; leave `model` out for the one that mlx_lm.server was "
                "started with, as any other name makes it load that"
            )
        return target.model

    def identify(self) -> Identity:
        """Asks for one token, as only an answer tells the version."""
        listed = list_models(self.control)
        reply = self._one_token(listed)
        unknown = dict(_UNKNOWN)
        model_path = _launched_folder(listed) if self.model == LAUNCHED else self.model
        if model_path is not None:
            del unknown["model_path"]
        build = reply.get("system_fingerprint")
        version, mlx, platform = _versions(build)
        if version is None:
            unknown["version"] = (
                "its answers have no system_fingerprint of mlx-lm: give identity.version in the target file"
            )
        if not self.forces_length:
            unknown["output_length"] = _LENGTH_IS_FREE
        usage = self.read_event(reply).usage
        if usage is None or usage.cached_tokens is None:
            unknown["cached_tokens"] = f"its answers do not tell how much was cached: {_NO_CACHED_TOKENS}"
        return Identity(
            engine=self.name,
            model=self.model,
            version=version,
            build=build,
            model_path=model_path,
            granularity_tokens=1,
            details=texts({"mlx": mlx, "platform": platform}),
            unknown=unknown,
        )

    def _payload(
        self, prompt: Mapping[str, Any], output_tokens: int, cache_salt: str | None, slot: int | None
    ) -> dict[str, Any]:
        # Never with a seed: a request that has one is not batched with others.
        payload = super()._payload(prompt, output_tokens, cache_salt, slot)
        if not self.forces_length:
            return payload
        return {**payload, "logit_bias": {str(token): _BAN for token in self.target.eos_token_ids}}

    def reset_cache(self) -> ResetOutcome:
        return ResetOutcome(
            complete=False,
            message="mlx_lm.server has no call that empties its cache: restart it for an empty one; texts that were "
            "never sent before start cold",
        )

    def _one_token(self, listed: ModelList) -> dict[str, Any]:
        url = f"{self.target.url}/chat/completions"
        body = {"model": self.model, "messages": [{"role": "user", "content": "."}], "max_tokens": 1, "temperature": 0}
        response = self.control.post(url, body)
        if response.status_code == 404:
            has = ", ".join(listed.names) or "none"
            raise TargetError(
                f"mlx_lm.server cannot serve the model {self.model!r}, it answered {answer_in_short(response)}: see "
                f"its log; start it with --model, or give one of those that it lists ({has}) as `model` in the target "
                "file"
            )
        return json_object(response)


def _launched_folder(listed: ModelList) -> str | None:
    """Of all that is listed, only a model that was launched from a folder is a path; the others are names on a hub."""
    return next((name for name in reversed(listed.names) if name.startswith("/")), None)


def _versions(fingerprint: object) -> tuple[str | None, str | None, str | None]:
    """mlx-lm, mlx, and platform with device, out of a system_fingerprint such as 0.32.2-0.32.4-macOS-26.1-arm64-M4."""
    found = re.fullmatch(r"(\d[^-]*)-(\d[^-]*)-(.+)", fingerprint) if isinstance(fingerprint, str) else None
    return (found[1], found[2], found[3]) if found else (None, None, None)
