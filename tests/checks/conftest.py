from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.checks.toy_server import ToyServer
from tests.engines.scripted_server import scripted_servers


@pytest.fixture
def serve() -> Iterator[Callable[[ToyServer], str]]:
    """Starts a toy server; returns its root URL."""
    with scripted_servers() as start:
        yield lambda toy: start(toy.routes)
