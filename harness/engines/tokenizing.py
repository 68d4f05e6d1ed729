"""What vLLM and SGLang have in common: POST /tokenize, and fields of a request that the OpenAI API does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.engines.base import ChatMessages
from harness.engines.control import json_object
from harness.engines.fingerprint import PROBE_CHATS, PROBE_TEXT, fingerprint
from harness.engines.openai import OpenAIEngine
from harness.errors import TargetError

_NO_SUCH_PATH = {404, 405, 501}
_NO_MESSAGES = {400, 422}
"""Releases whose /tokenize takes texts only refuse messages so; so do those whose template does not take the chat."""


class TokenizingEngine(OpenAIEngine):
    """Base of the adapters of both."""

    takes_token_ids: bool = True
    takes_cache_salt: bool = True
    forces_length: bool = True

    def _payload(
        self, prompt: Mapping[str, Any], output_tokens: int, cache_salt: str | None, slot: int | None
    ) -> dict[str, Any]:
        return {**super()._payload(prompt, output_tokens, cache_salt, slot), "ignore_eos": True}

    def count_text(self, text: str) -> int | None:
        tokens = self._tokenize({"prompt": text, "add_special_tokens": False}, _NO_SUCH_PATH)
        return None if tokens is None else len(tokens)

    def chat_tokens(self, messages: ChatMessages, tools: Sequence[Mapping[str, Any]] = ()) -> list[int] | None:
        """As the chat endpoint makes them: special tokens come from the template alone, both by default."""
        chat = {"messages": list(messages), **({"tools": list(tools)} if tools else {})}
        return self._tokenize(chat, _NO_SUCH_PATH | _NO_MESSAGES)

    def count_chat(self, messages: ChatMessages) -> int:
        """By /tokenize; where that takes no chats, as `OpenAIEngine` does."""
        tokens = self.chat_tokens(messages)
        return super().count_chat(messages) if tokens is None else len(tokens)

    def fingerprints(self, unknown: dict[str, str]) -> tuple[str | None, str | None]:
        """Marks of tokeniser and chat template; None, with the reason in `unknown`: the server tokenises none.

        They are of the token ids of a fixed text and of a fixed chat, as neither engine shows its template. So the
        second marks template and tokeniser together, and differs from that of an engine that shows the template's
        text. A template that writes the date into the prompt gets another mark each day.
        """
        text = self._tokenize({"prompt": PROBE_TEXT, "add_special_tokens": False}, _NO_SUCH_PATH)
        chat = next((tokens for tokens in map(self.chat_tokens, PROBE_CHATS) if tokens is not None), None)
        if text is None:
            unknown["tokenizer_fingerprint"] = "POST /tokenize is not there, or not let through"
        if chat is None:
            unknown["template_fingerprint"] = "POST /tokenize is not there, or takes no chats"
        return (None if text is None else fingerprint(text)), (None if chat is None else fingerprint(chat))

    def _tokenize(self, what: Mapping[str, Any], not_offered: set[int]) -> list[int] | None:
        url = f"{self.target.server_root}/tokenize"
        response = self.control.post(url, {"model": self.model, **what})
        if response.status_code in not_offered:
            return None
        tokens = json_object(response).get("tokens")
        if not isinstance(tokens, list):
            raise TargetError(f"POST {url} answered without tokens; is this {self.name}?")
        return tokens
