"""Any OpenAI-compatible server: what the API itself offers, and nothing beyond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from harness.engines.base import ChatMessages, Event, HitCounters, Identity, ResetOutcome
from harness.engines.control import Control, answer_in_short, json_object
from harness.engines.reading import read_event
from harness.engines.target import Target
from harness.errors import TargetError


@dataclass(frozen=True, slots=True)
class ModelList:
    """What GET /v1/models says."""

    models: tuple[Mapping[str, Any], ...]
    server: str
    """The Server header of the answer, empty if there was none."""

    @property
    def names(self) -> list[str]:
        return [str(model["id"]) for model in self.models]

    def find(self, name: str) -> Mapping[str, Any] | None:
        """The entry of a model, by its id or by one of its aliases."""
        for model in self.models:
            aliases = model.get("aliases")
            if name == model["id"] or (isinstance(aliases, list) and name in aliases):
                return model
        return None


def list_models(control: Control) -> ModelList:
    """Raises TargetError if the server is not there, or is no OpenAI-compatible one."""
    url = f"{control.target.url}/models"
    response = control.get(url)
    try:
        models = json_object(response).get("data")
    except TargetError:
        models = None
    if not isinstance(models, list) or not all(isinstance(model, dict) and "id" in model for model in models):
        raise TargetError(
            f"{control.target.url} is no OpenAI-compatible server, or not its base URL: "
            f"GET {url} should list models, but answered {answer_in_short(response)}"
        )
    return ModelList(tuple(models), response.headers.get("Server", ""))


class OpenAIEngine:
    """The generic adapter, and the base of those that know more (the protocol is `harness.engines.base.Engine`)."""

    name: str = "openai"
    hit_counters: HitCounters | None = None
    request_headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, target: Target, model: str) -> None:
        """`model` is the name under which the server lists it. Sends nothing yet.

        Raises TargetError if the environment variable of the target's API key is not set.
        """
        self.target = target
        self.model = model
        self.control = Control(target)

    @classmethod
    def answers(cls, control: Control, listed: ModelList) -> bool:
        """Whether this adapter fits the server behind `control`; the generic one fits all."""
        return True

    def identify(self) -> Identity:
        entry = self.model_entry()
        return Identity(
            engine=self.name,
            model=self.model,
            context_tokens=_context_tokens(entry),
            details=texts({"owned_by": entry.get("owned_by"), "root": entry.get("root")}),
        )

    def chat_payload(self, messages: ChatMessages, output_tokens: int) -> dict[str, Any]:
        """Body of a streaming chat request for at most `output_tokens` tokens; the model may end it earlier."""
        return {
            "model": self.model,
            "messages": list(messages),
            "max_tokens": output_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def read_event(self, body: Mapping[str, Any]) -> Event:
        return read_event(body)

    def count_text(self, text: str) -> int | None:
        return None

    def count_chat(self, messages: ChatMessages) -> int:
        """Prompt tokens of a chat, as the server reports them for a real request that asks for one token."""
        body = {"model": self.model, "messages": list(messages), "max_tokens": 1, "temperature": 0, "stream": False}
        url = f"{self.target.url}/chat/completions"
        usage = read_event(self.control.post_for_object(url, body)).usage
        if usage is None or usage.prompt_tokens is None:
            raise TargetError(
                f"{url} reports no usage.prompt_tokens, so kvswarm cannot tell how long its prompts are: "
                "turn usage reporting on at the server, or in what stands before it"
            )
        return usage.prompt_tokens

    def chat_tokens(self, messages: ChatMessages) -> list[int] | None:
        """Token ids of a chat's prompt, template and generation prompt included; None: the server does not tell."""
        return None

    def is_idle(self, metrics: Mapping[str, float]) -> bool | None:
        return None

    def reset_cache(self) -> ResetOutcome:
        return ResetOutcome(
            complete=False,
            message="the OpenAI API has no call that empties a cache; texts that were never sent before start cold",
        )

    def model_entry(self) -> Mapping[str, Any]:
        """What GET /v1/models says about this model. Raises TargetError if it does not list it."""
        listed = list_models(self.control)
        entry = listed.find(self.model)
        if entry is None:
            raise TargetError(no_such_model(self.target, self.model, listed))
        return entry


def no_such_model(target: Target, model: str, listed: ModelList) -> str:
    has = f"it has {', '.join(listed.names)}" if listed.models else "it lists no model at all"
    return f"{target.url} does not serve a model {model!r}: {has}"


def texts(values: Mapping[str, object]) -> dict[str, str]:
    """For `Identity.details`: what is known, as text."""
    return {name: str(value) for name, value in values.items() if value is not None and value != ""}


def _context_tokens(entry: Mapping[str, Any]) -> int | None:
    """vLLM and SGLang say max_model_len; llama.cpp says meta.n_ctx."""
    meta = entry.get("meta")
    candidates = (entry.get("max_model_len"), meta.get("n_ctx") if isinstance(meta, dict) else None)
    return next((value for value in candidates if isinstance(value, int) and value > 0), None)
