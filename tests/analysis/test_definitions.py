"""What other tools mean by TTFT, TPOT and ITL, worked out by hand on five requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.analysis.definitions import DEFINITIONS, Figure, Tool
from harness.analysis.run import Run
from harness.analysis.sample import Sample
from tests.analysis.rows import Row, request

MakeRun = Callable[..., Run]
BASE_NS = 1_700_000_000_000_000_000


def answered(first_ms: int, last_ms: int, end_ms: int, n: int | None, gaps: list[float], **changes: Any) -> Row:
    """Sent at 0 ms; every chunk but the first brings what `n` says."""
    stamps = {"t_send": 0, "t_first": first_ms, "t_last": last_ms, "t_end": end_ms}
    row = request(**{name: BASE_NS + ms * 1_000_000 for name, ms in stamps.items()}, t_due=BASE_NS)
    row |= {"clock_stepped": False, "output_tokens": n, "itl_ms": gaps, "chunks": len(gaps) + 1, "first_tokens": 1}
    return row | {"ttft_ms": float(first_ms), "e2e_ms": float(end_ms)} | changes


ROWS = [
    # Four tokens in three chunks, on a new connection.
    answered(100, 400, 450, 4, [200.0, 100.0], connect_ms=5.0, tpot_ms=100.0),
    answered(50, 50, 60, 1, []),
    # Eleven tokens in six chunks, two of them in the first.
    answered(200, 1200, 1300, 11, [200.0] * 5, first_tokens=2, tpot_ms=1000 / 9),
    # Nobody counted its tokens.
    answered(80, 180, 190, None, [100.0]),
    # The clock was set meanwhile.
    answered(10, 20, 30, 2, [1.0], clock_stepped=True, itl_ms=None, ttft_ms=None, e2e_ms=None),
]
GAPS = [200.0, 100.0, *[200.0] * 5, 100.0]
BY_HAND: dict[tuple[Tool, Figure], list[float]] = {
    ("kvswarm", "ttft"): [100, 50, 200, 80],
    ("kvswarm", "tpot"): [100, 1000 / 9],
    ("kvswarm", "itl"): GAPS,
    ("kvswarm", "e2e"): [450, 60, 1300, 190],
    ("vllm bench", "ttft"): [105, 50, 200, 80],
    ("vllm bench", "tpot"): [100, 100],
    ("vllm bench", "itl"): GAPS,
    ("vllm bench", "e2e"): [405, 50, 1200, 180],
    ("sglang bench", "ttft"): [105, 50, 200, 80],
    ("sglang bench", "tpot"): [350 / 3, 110],
    ("sglang bench", "itl"): GAPS,
    ("sglang bench", "e2e"): [455, 60, 1300, 190],
    ("guidellm", "ttft"): [100, 50, 200, 80],
    ("guidellm", "tpot"): [100, 50, 1200 / 11],
    ("guidellm", "itl"): [100, 100],
    ("guidellm", "e2e"): [450, 60, 1300, 190],
    ("aiperf", "ttft"): [105, 50, 200, 80],
    ("aiperf", "itl"): [100, 100],
    ("aiperf", "icl"): GAPS,
    ("aiperf", "e2e"): [405, 50, 1200, 180],
    ("inference-perf", "ttft"): [105, 200],
    ("inference-perf", "tpot"): [100, 100],
    ("inference-perf", "ntpot"): [455 / 4, 60, 1300 / 11],
    # One token came with another in the first request, five in the third.
    ("inference-perf", "itl"): [*GAPS, *[0.0] * 6],
    ("inference-perf", "e2e"): [455, 60, 1300, 190],
}


@pytest.fixture
def rows(make_run: MakeRun) -> pd.DataFrame:
    return make_run(ROWS).only_target().counted


def test_every_definition_gives_what_is_worked_out_by_hand(rows: pd.DataFrame) -> None:
    found = {
        (tool, figure): definition.of(rows).values_ms.tolist()
        for tool, figures in DEFINITIONS.items()
        for figure, definition in figures.items()
    }
    assert found == {key: pytest.approx(values) for key, values in BY_HAND.items()}


def test_guidellm_lets_a_request_weigh_as_many_as_its_tokens(rows: pd.DataFrame) -> None:
    tpot, itl = (DEFINITIONS["guidellm"][figure].of(rows) for figure in ("tpot", "itl"))
    assert tpot.weights is not None
    assert itl.weights is not None
    assert (tpot.weights.tolist(), itl.weights.tolist()) == ([4, 1, 11], [3, 10])
    # All the time over all the tokens: (400 + 50 + 1200) ms / 16.
    assert tpot.mean() == pytest.approx(103.125)
    # In the order of their values 1, 4 and 11 tokens: up to the second lie 5 of 16.
    assert [tpot.quantile(share) for share in (0.05, 0.31, 0.32, 0.99)] == pytest.approx(
        [50, 100, 1200 / 11, 1200 / 11]
    )


def test_inference_perf_takes_an_answer_without_tokens_for_0_ms_a_token(make_run: MakeRun) -> None:
    empty = make_run([*ROWS, answered(70, 70, 80, 0, [])]).only_target().counted
    ntpot = DEFINITIONS["inference-perf"]["ntpot"].of(empty).values_ms.tolist()
    assert ntpot == pytest.approx([*BY_HAND["inference-perf", "ntpot"], 0.0])


def test_its_percentiles_are_values_that_occurred(rows: pd.DataFrame) -> None:
    ttft = DEFINITIONS["guidellm"]["ttft"].of(rows)
    assert ttft.quantile(0.5) == 80  # of 50, 80, 100, 200
    assert DEFINITIONS["vllm bench"]["ttft"].of(rows).quantile(0.5) == 92.5  # between 80 and 105


def test_equal_weights_agree_with_numpy() -> None:
    values = np.random.default_rng(1).exponential(size=1_000)
    for share in (0.1, 0.5, 0.99):
        expected = np.quantile(values, share, method="inverted_cdf")
        assert Sample(values, np.full(len(values), 7.0)).quantile(share) == expected


def test_nothing_measured_is_not_zero(make_run: MakeRun) -> None:
    empty = make_run([request(status="timeout")]).only_target().counted
    ok = empty[empty["status"] == "ok"]
    for figures in DEFINITIONS.values():
        for definition in figures.values():
            sample = definition.of(ok)
            assert (sample.mean(), sample.quantile(0.5)) == (None, None)
