"""Tests side by side: those that share a server run in one process."""

from __future__ import annotations

import pytest

from tests.groups import group


@pytest.mark.parametrize(
    ("nodeid", "named"),
    [
        ("tests/e2e/test_page.py::test_a_run[2]", "tests/e2e/test_page.py"),
        ("tests/contract/test_runs.py::test_a_run[sim-vllm-agent-loop]", "contract sim-vllm"),
        ("tests/contract/test_cache.py::test_a_prefix[sim-vllm]", "contract sim-vllm"),
        ("tests/contract/test_cache.py::test_a_prefix[sim-llama-cpp]", "contract sim-llama-cpp"),
        ("tests/contract/test_cache.py::test_a_prefix[vllm]", "contract"),
        ("tests/contract/test_cache.py::test_a_prefix[llama-cpp]", "contract"),
    ],
)
def test_a_file_or_an_engine_of_the_contract_is_a_group(nodeid: str, named: str) -> None:
    assert group(nodeid) == named
