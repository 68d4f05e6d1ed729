"""Any OpenAI-compatible server: what the API itself offers, and nothing beyond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from harness.engines.base import ChatMessages, Event, Identity, Metric, Need, ResetOutcome
from harness.engines.control import Control, answer_in_short, json_object
from harness.engines.identity import explained
from harness.engines.reading import read_event
from harness.engines.target import Target
from harness.errors import TargetError


class NoUsage(TargetError):
    """The server does not count the tokens of a prompt."""


@dataclass(frozen=True, slots=True)
class ModelList:
    """What GET /v1/models says."""

    models: tuple[Mapping[str, Any], ...]
    server: str
    """The Server header of the answer, empty if there was none."""

    @property
    def names(self) -> list[str]:
        return [str(model["id"]) for model in self.models]

    @property
    def owners(self) -> set[str]:
        """Who the list says that its models belong to: an engine's name, where no gateway rewrites it."""
        return {str(model["owned_by"]) for model in self.models if model.get("owned_by")}

    def find(self, name: str) -> Mapping[str, Any] | None:
        """The entry of a model, by its id or by one of its aliases."""
        for model in self.models:
            aliases = model.get("aliases")
            if name == model["id"] or (isinstance(aliases, list) and name in aliases):
                return model
        return None


@dataclass(frozen=True, slots=True)
class Served:
    """What GET /v1/models says about one model."""

    root: str | None
    """What was loaded under its name; of an adapter: the model that it was put on. Some servers repeat the name."""
    context_tokens: int | None
    adapter: str | None
    """The name again, if it stands for a LoRA adapter."""
    details: Mapping[str, str]
    """owned_by, and the adapter's own root."""


def list_models(control: Control) -> ModelList:
    """Raises TargetError if the server is not there, or is no OpenAI-compatible one."""
    url = f"{control.target.url}/models"
    response = control.get(url)
    try:
        models = json_object(response).get("data")
    except TargetError:
        models = None
    if not isinstance(models, list) or not all(isinstance(model, dict) and "id" in model for model in models):
        if response.status_code == 200 and not response.content:
            raise TargetError(
                f"GET {url} answered with an empty body, as mlx_lm.server does while the folder of its Hugging Face "
                "cache is not there: make that folder on the server's machine (~/.cache/huggingface/hub), or start the "
                "server with HF_HUB_CACHE set to one that exists"
            )
        raise TargetError(
            f"{control.target.url} is no OpenAI-compatible server, or not its base URL: "
            f"GET {url} should list models, but answered {answer_in_short(response)}"
        )
    return ModelList(tuple(models), response.headers.get("Server", ""))


class OpenAIEngine:
    """The generic adapter, and the base of those that know more (the protocol is `harness.engines.base.Engine`)."""

    name: str = "openai"
    metrics: tuple[Metric, ...] = ()
    advice: Mapping[Need, str] = MappingProxyType({})
    takes_token_ids: bool = False
    takes_cache_salt: bool = False
    salt_fields: tuple[str, ...] = ("cache_salt",)
    """Names of the field that carries a cache salt, where the engine takes one; the first is the one in use."""
    pins_slots: bool = False
    forces_length: bool = False
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

    @classmethod
    def model_name(cls, target: Target, listed: ModelList) -> str:
        """The model to ask for: the target's, else the first that is listed. Raises TargetError if it is not there."""
        if target.model is None:
            if not listed.models:
                raise TargetError(f"{target.url} lists no model: load one first")
            return listed.names[0]
        if listed.find(target.model) is None:
            raise TargetError(no_such_model(target, target.model, listed))
        return target.model

    def identify(self) -> Identity:
        """What GET /v1/models tells; adapters that know more build their own identity."""
        served = self.served()
        identity = Identity(
            engine=self.name,
            model=self.model,
            model_path=served.root,
            context_tokens=served.context_tokens,
            adapter=served.adapter,
            details=served.details,
        )
        return explained(identity, "the OpenAI API has no word for it, or this server leaves it out")

    def chat_payload(
        self, messages: ChatMessages, output_tokens: int, *, cache_salt: str | None = None, slot: int | None = None
    ) -> dict[str, Any]:
        """Body of a streaming chat request for at most `output_tokens` tokens; the model may end it earlier."""
        return self._payload({"messages": list(messages)}, output_tokens, cache_salt, slot)

    def ids_payload(
        self, prompt: Sequence[int], output_tokens: int, *, cache_salt: str | None = None, slot: int | None = None
    ) -> dict[str, Any]:
        if not self.takes_token_ids:
            raise ValueError(f"{self.name} takes no token ids")
        return self._payload({"prompt": list(prompt)}, output_tokens, cache_salt, slot)

    def _payload(
        self, prompt: Mapping[str, Any], output_tokens: int, cache_salt: str | None, slot: int | None
    ) -> dict[str, Any]:
        if cache_salt is not None and not self.takes_cache_salt:
            raise ValueError(f"{self.name} takes no cache salt")
        if slot is not None and not self.pins_slots:
            raise ValueError(f"{self.name} does not let a request choose its slot")
        return {
            "model": self.model,
            **prompt,
            "max_tokens": output_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **({} if cache_salt is None else {self.salt_fields[0]: cache_salt}),
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
            raise NoUsage(
                f"{url} reports no usage.prompt_tokens, so kvswarm cannot tell how long its prompts are: "
                "turn usage reporting on at the server, or in what stands before it"
            )
        return usage.prompt_tokens

    def chat_tokens(self, messages: ChatMessages, tools: Sequence[Mapping[str, Any]] = ()) -> list[int] | None:
        """Token ids of a chat's prompt, template and generation prompt included; None: the server does not tell."""
        return None

    def is_idle(self, metrics: Mapping[str, float]) -> bool | None:
        counts = [
            next((metrics[name] for name in metric.names if name in metrics), None)
            for metric in self.metrics
            if metric.meaning in ("running_requests", "waiting_requests")
        ]
        return all(count == 0 for count in counts) if counts and None not in counts else None

    def reset_cache(self) -> ResetOutcome:
        return ResetOutcome(
            complete=False,
            message="the OpenAI API has no call that empties a cache; texts that were never sent before start cold",
        )

    def model_entry(self) -> Mapping[str, Any]:
        """The entry of this model in GET /v1/models. Raises TargetError if it is not listed."""
        return self._listed()[1]

    def served(self) -> Served:
        """What that entry says, and, for a LoRA adapter, that of its model. Raises TargetError if it is not listed."""
        listed, entry = self._listed()
        parent = entry.get("parent")
        adapter = self.model if isinstance(parent, str) and parent not in ("", entry["id"]) else None
        base = (listed.find(str(parent)) if adapter else entry) or {}
        root = base.get("root")
        return Served(
            root=root if isinstance(root, str) and root else None,
            context_tokens=_context_tokens(entry) or _context_tokens(base),
            adapter=adapter,
            details=texts(
                {"owned_by": entry.get("owned_by"), "parent": parent, "adapter_root": adapter and entry.get("root")}
            ),
        )

    def _listed(self) -> tuple[ModelList, Mapping[str, Any]]:
        listed = list_models(self.control)
        entry = listed.find(self.model)
        if entry is None:
            raise TargetError(no_such_model(self.target, self.model, listed))
        return listed, entry


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
