"""From a target to the adapter of the engine that answers there."""

from __future__ import annotations

from harness.engines.base import Identity
from harness.engines.control import Control
from harness.engines.identity import complete
from harness.engines.llama_cpp import LlamaCppEngine
from harness.engines.mlx_lm import MlxLmEngine
from harness.engines.openai import OpenAIEngine, list_models
from harness.engines.sglang import SglangEngine
from harness.engines.target import Target
from harness.engines.vllm import VllmEngine
from harness.errors import TargetError

ADAPTERS: tuple[type[OpenAIEngine], ...] = (VllmEngine, SglangEngine, LlamaCppEngine, MlxLmEngine, OpenAIEngine)
"""Asked in this order whether they fit; the generic one, which fits all, comes last."""


def connect(target: Target) -> OpenAIEngine:
    """The adapter for what answers at `target`, bound to its model.

    Raises TargetError if the server cannot be reached, is no OpenAI-compatible one, or lacks the model.
    """
    control = Control(target)
    listed = list_models(control)
    if target.engine is not None:
        adapter = _adapter(target.engine)
    else:
        adapter = next(adapter for adapter in ADAPTERS if adapter.answers(control, listed))
    return adapter(target, adapter.model_name(target, listed))


def bind(engine: str, target: Target, model: str) -> OpenAIEngine:
    """The adapter called `engine`; asks the server nothing. Raises TargetError if there is no such adapter."""
    return _adapter(engine)(target, model)


def identify(engine: OpenAIEngine) -> Identity:
    """Who answers: what the engine tells, and for the rest what stands by hand in the target file.

    Raises TargetError if the engine cannot be asked, or tells something else than the file.
    """
    identity = engine.identify()
    try:
        return complete(identity, engine.target.identity)
    except TargetError as problem:
        raise TargetError(f"Target {engine.target.name}: {problem}") from None


def _adapter(engine: str) -> type[OpenAIEngine]:
    for adapter in ADAPTERS:
        if adapter.name == engine:
            return adapter
    known = ", ".join(adapter.name for adapter in ADAPTERS)
    raise TargetError(f"There is no adapter for an engine {engine!r}; there are {known}")
