from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


@pytest.fixture
def vllm_routes(fixtures: Path) -> dict[str, Any]:
    """What the recorded vLLM answers."""
    folder = fixtures / "vllm"
    return {
        "GET /v1/models": (folder / "00-get-v1-models.body.json").read_text(),
        "GET /version": (folder / "00-get-version.body.json").read_text(),
        "GET /metrics": (folder / "02-metrics-before.body.txt").read_text(),
        "POST /tokenize": _tokenize(folder),
    }


@pytest.fixture
def info(fixtures: Path) -> dict[str, Any]:
    """The recorded /server_info of SGLang."""
    loaded: dict[str, Any] = json.loads((fixtures / "sglang" / "00-get-server_info.body.json").read_text())
    return loaded


@pytest.fixture
def sglang_routes(fixtures: Path, info: dict[str, Any]) -> dict[str, Any]:
    """What the recorded SGLang answers."""
    folder = fixtures / "sglang"
    return {
        "GET /v1/models": (folder / "00-get-v1-models.body.json").read_text(),
        "GET /server_info": info,
        "POST /tokenize": _tokenize(folder),
    }


def _tokenize(folder: Path) -> Any:
    """One text and one chat were recorded: any other gets the same ids."""

    def answer(request: dict[str, Any]) -> str:
        kind = "chat" if b'"messages"' in request["body"] else "prompt"
        return (folder / f"12-tokenize-{kind}.body.json").read_text()

    return answer
