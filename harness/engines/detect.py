"""From a target to the adapter of the engine that answers there."""

from __future__ import annotations

from harness.engines.control import Control
from harness.engines.llama_cpp import LlamaCppEngine
from harness.engines.openai import ModelList, OpenAIEngine, list_models, no_such_model
from harness.engines.target import Target
from harness.errors import TargetError

ADAPTERS: tuple[type[OpenAIEngine], ...] = (LlamaCppEngine, OpenAIEngine)
"""Asked in this order whether they fit; the generic one, which fits all, comes last."""


def connect(target: Target) -> OpenAIEngine:
    """The adapter for what answers at `target`, bound to its model.

    Raises TargetError if the server cannot be reached, is no OpenAI-compatible one, or lacks the model.
    """
    control = Control(target)
    listed = list_models(control)
    model = _model(target, listed)
    if target.engine is not None:
        return bind(target.engine, target, model)
    fitting = next(adapter for adapter in ADAPTERS if adapter.answers(control, listed))
    return fitting(target, model)


def bind(engine: str, target: Target, model: str) -> OpenAIEngine:
    """The adapter called `engine`; asks the server nothing. Raises TargetError if there is no such adapter."""
    for adapter in ADAPTERS:
        if adapter.name == engine:
            return adapter(target, model)
    known = ", ".join(adapter.name for adapter in ADAPTERS)
    raise TargetError(f"There is no adapter for an engine {engine!r}; there are {known}")


def _model(target: Target, listed: ModelList) -> str:
    if target.model is None:
        if not listed.models:
            raise TargetError(f"{target.url} lists no model: load one first")
        return listed.names[0]
    if listed.find(target.model) is None:
        raise TargetError(no_such_model(target, target.model, listed))
    return target.model
