"""What an objective says, and what is refused in one sentence."""

from __future__ import annotations

import pytest

from harness.errors import InputError
from harness.slo.objective import parse_slo


def test_quantiles_units_and_failures() -> None:
    limits = parse_slo("ttft_p99<500ms, tpot_p99 < 50ms,e2e_p50<1.5s,ttft_due_p99.9<2s,failures<0.5%")
    assert [(limit.measure, limit.limit_ms, limit.allowed) for limit in limits] == [
        ("ttft", 500.0, 0.01),
        ("tpot", 50.0, 0.01),
        ("e2e", 1500.0, 0.5),
        ("ttft_due", 2000.0, 0.001),
        ("failures", None, 0.005),
    ]
    assert limits[1].text == "tpot_p99<50ms"


@pytest.mark.parametrize(
    ("slo", "words"),
    [
        ("", "say what has to hold"),
        ("ttft_p99<500", "'ttft_p99<500' in it cannot be read"),
        ("ttft<500ms", "cannot be read"),
        ("ttft_p99>500ms", "cannot be read"),
        ("ttft_p99<500ms,", "'' in it cannot be read"),
        ("itl_p99<50ms", "no time 'itl'; choose one of ttft, ttft_due, tpot, e2e"),
        ("ttft_p100<500ms", "above 0 and below 100"),
        ("ttft_p0<500ms", "above 0 and below 100"),
        ("ttft_p99<0ms", "no request is faster"),
        ("failures<0%", "more than 0%"),
        ("failures<1", "cannot be read"),
        ("ttft_p99<500ms,ttft_p99<400ms", "ttft_p99 stands there twice"),
        ("failures<1%,failures<2%", "failures stands there twice"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence(slo: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        parse_slo(slo)
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
