from __future__ import annotations

import pytest
from tokenizers import Tokenizer

from harness.workload.words import CANDIDATES
from tests.workload.fake_target import FakeTarget, train


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Holds all candidate words."""
    return train(CANDIDATES)


@pytest.fixture
def target(tokenizer: Tokenizer) -> FakeTarget:
    return FakeTarget(tokenizer)
