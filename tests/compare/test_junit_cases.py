"""What CI shows of gates is what the exit code says."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from typing import get_args

import pytest

from harness.compare.gates import Judged, State, fails
from harness.compare.junit_cases import as_junit

AT = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize("state", get_args(State))
@pytest.mark.parametrize("strict", [False, True])
def test_a_gate_is_red_if_and_only_if_the_command_fails(state: State, strict: bool) -> None:
    gates = [Judged("ttft_p99_ratio>1.1", "B", state, "what was found")]
    (suite,) = ET.fromstring(as_junit(gates, AT, strict=strict))
    (case,) = suite
    assert (case.get("classname"), case.get("name")) == ("B against A", "ttft_p99_ratio>1.1")
    is_red = any(child.tag in ("failure", "error") for child in case)
    assert is_red == fails(gates, strict=strict)
