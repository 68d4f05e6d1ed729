from __future__ import annotations

from typing import Any

import pytest

from harness.engines.base import Identity
from harness.engines.detect import connect, identify
from harness.engines.identity import IdentityByHand, build_of, complete, explained
from harness.engines.target import Target
from harness.errors import TargetError
from tests.engines.scripted_server import Serve

TOLD = Identity(
    engine="llama-cpp",
    model="tiny",
    context_tokens=2048,
    kv_dtype="auto",
    unknown={"capacity_tokens": "the slots may share one buffer", "cache_ram": "not told"},
)


def test_what_stands_by_hand_fills_what_is_not_told_and_is_marked() -> None:
    identity = complete(TOLD, IdentityByHand(capacity_tokens=8192, prefix_caching=False))
    assert (identity.capacity_tokens, identity.prefix_caching, identity.context_tokens) == (8192, False, 2048)
    assert identity.by_hand == ("capacity_tokens", "prefix_caching")
    assert identity.unknown == {"cache_ram": "not told"}


def test_what_the_engine_tells_may_stand_by_hand_too_but_is_not_by_hand() -> None:
    assert complete(TOLD, IdentityByHand(context_tokens=2048)) == TOLD


def test_a_type_left_to_the_model_can_be_named_by_hand() -> None:
    identity = complete(TOLD, IdentityByHand(kv_dtype="bfloat16"))
    assert (identity.kv_dtype, identity.by_hand) == ("bfloat16", ("kv_dtype",))


def test_a_file_that_contradicts_the_engine_is_refused() -> None:
    with pytest.raises(TargetError) as caught:
        complete(TOLD, IdentityByHand(context_tokens=4096))
    assert str(caught.value) == (
        "identity.context_tokens in the target file is 4096, but llama-cpp tells 2048: remove the key, or load the "
        "server that it describes"
    )


def test_the_targets_own_identity_is_filled_in_and_its_name_told(serve: Serve) -> None:
    root = serve({"GET /v1/models": {"data": [{"id": "a", "owned_by": "someone", "max_model_len": 100}]}})

    def identity(**by_hand: Any) -> Identity:
        return identify(connect(Target(url=root, name="lab", engine="openai", identity=IdentityByHand(**by_hand))))

    assert identity(capacity_tokens=1000).by_hand == ("capacity_tokens",)
    with pytest.raises(TargetError, match=r"^Target lab: identity.context_tokens in the target file is 200, but"):
        identity(context_tokens=200)


def test_every_field_that_is_not_told_has_a_reason() -> None:
    identity = explained(TOLD, "no word for it")
    assert identity.unknown["capacity_tokens"] == "the slots may share one buffer"
    assert identity.unknown["version"] == "no word for it"
    assert "context_tokens" not in identity.unknown
    assert "adapter" not in identity.unknown


@pytest.mark.parametrize(
    ("version", "build"),
    [(None, None), ("0.33.0", None), ("0.33.0rc1.dev4+g4ba787ec9.cu129", "g4ba787ec9.cu129"), ("0.32.0+", None)],
)
def test_the_build_is_the_local_part_of_a_version(version: str | None, build: str | None) -> None:
    assert build_of(version) == build
