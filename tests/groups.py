"""Tests that run at the same time, in several processes (`pytest -n 4`): which of them one process runs, one by one."""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadScopeScheduling

FOLDERS_THAT_TAKE_LONG = ("tests/e2e/", "tests/contract/", "tests/checks/")
SIMULATED = ("sim-llama-cpp", "sim-mlx-lm", "sim-vllm", "sim-sglang")


def group(nodeid: str) -> str:
    """The tests of a file, as they may share a server or a browser.

    Of the contract suite those of a simulated engine, or of all real ones: only one real server is up at a time.
    """
    path = nodeid.partition("::")[0]
    if not path.startswith("tests/contract/"):
        return path
    return next((f"contract {engine}" for engine in SIMULATED if f"[{engine}" in nodeid), "contract")


def longest_first(items: list[pytest.Item]) -> None:
    """The order in which groups are given out: with short ones at the end, all processes end at about the same time."""
    items.sort(key=lambda item: not item.nodeid.startswith(FOLDERS_THAT_TAKE_LONG))


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
