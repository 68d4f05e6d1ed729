from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.scripted_server import Serve, scripted_servers


@pytest.fixture
def serve() -> Iterator[Serve]:
    with scripted_servers() as start:
        yield start


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Bodies recorded from real servers, a folder for each server."""
    return Path(__file__).parents[1] / "fixtures"
