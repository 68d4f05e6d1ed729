"""From when on a run is steady: known steps and ramps are found, and noise is not taken for one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from harness.analysis.steady import mser, settle, steadiness
from harness.analysis.steady_series import Series, in_flight_series, median_series, ratio_series, windows_of

Floats = npt.NDArray[np.float64]
Made = Callable[[np.random.Generator], Floats]
N = 100
AT = np.arange(N)


def series(values: Floats, kind: str = "share", name: str = "hit rate") -> Series:
    return Series(name, kind, np.arange(1, len(values) + 1.0), values)  # type: ignore[arg-type]


def correlated(rng: np.random.Generator, r: float, deviation: float = 0.05) -> Floats:
    """Each value goes on from the one before, by r."""
    noise = rng.normal(0, deviation, N)
    for place in range(1, N):
        noise[place] = r * noise[place - 1] + np.sqrt(1 - r * r) * noise[place]
    return noise


def test_mser_is_the_formula_written_out() -> None:
    values = np.random.default_rng(1).normal(0, 1, 40) + 5 * (np.arange(40) < 7)
    errors = [((values[d:] - values[d:].mean()) ** 2).sum() / (40 - d) ** 2 for d in range(21)]
    assert mser(values, 20) == int(np.argmin(errors)) == 7


@pytest.mark.parametrize(
    ("made", "most"),
    [
        (lambda rng: 0.6 + rng.normal(0, 0.05, N), 0),
        (lambda rng: 0.6 + correlated(rng, 0.5), 2),
        (lambda rng: 0.6 + correlated(rng, 0.8), 14),
        (lambda rng: np.full(N, 0.6), 0),
    ],
    ids=["independent", "correlated 0.5", "correlated 0.8", "constant"],
)
def test_noise_is_steady_from_the_start(made: Made, most: int) -> None:
    rng = np.random.default_rng(2)
    assert sum(settle(series(made(rng))).from_s != 0 for _ in range(200)) <= most


@pytest.mark.parametrize(
    ("made", "early", "late"),
    [
        (lambda rng: np.where(AT < 20, 0.31, 0.78), 20, 35),
        (lambda rng: np.minimum(0.31 + 0.47 * AT / 30, 0.78), 20, 40),
        (lambda rng: 0.78 - 0.47 * np.exp(-AT / 10), 10, 40),
    ],
    ids=["step", "ramp", "approach"],
)
def test_a_start_that_is_different_is_found_and_where_it_ends(made: Made, early: int, late: int) -> None:
    rng = np.random.default_rng(3)
    found = [settle(series(made(rng) + correlated(rng, 0.3))).from_s for _ in range(100)]
    is_right = [time is not None and early <= time <= late for time in found]
    assert sum(is_right) >= 95  # of 100


@pytest.mark.parametrize(
    "made",
    [lambda rng: 0.31 + 0.47 * AT / N, lambda rng: np.where(AT < 70, 0.31, 0.78)],
    ids=["ramp", "late step"],
)
def test_what_still_changes_in_the_second_half_is_never_steady(made: Made) -> None:
    rng = np.random.default_rng(4)
    assert sum(settle(series(made(rng) + correlated(rng, 0.3))).from_s is None for _ in range(100)) >= 95


def flat_ms(rng: np.random.Generator, windows: int) -> Floats:
    return 22 * np.exp(rng.normal(0, 0.15, windows))


def test_a_disturbance_is_none_of_the_start_and_has_its_time() -> None:
    rng = np.random.default_rng(8)
    for at in (8, 22, 35):
        values = flat_ms(rng, 43)
        values[:3] = 200
        values[at] = 110
        found = settle(series(values, "ms", "TTFT p50"))
        assert (found.from_s, [one.at_s for one in found.disturbed]) == (3, [at + 1])
        assert found.sentence() == f"TTFT p50 still falls until 3.0 s: 200 ms -> {found.then:.1f} ms"
        assert str(found.disturbance()).startswith(f"TTFT p50 was disturbed at {at + 1}")
        assert ": 110 ms against 2" in str(found.disturbance())


def test_the_levels_are_those_around_the_place() -> None:
    rng = np.random.default_rng(9)
    dips = flat_ms(rng, 43)
    dips[:3], dips[3:8] = 200, [14.6, 22.4, 22.1, 14.8, 15.0]  # MSER would leave out all eight
    found = settle(series(dips, "ms", "TTFT p50"))
    assert (found.from_s, found.first) == (3, 200)
    late = settle(series(np.where(AT < 70, 30.0, 20.0) * np.exp(rng.normal(0, 0.05, N)), "ms", "TTFT p50"))
    assert (
        late.sentence()
        == f"TTFT p50 still falls at 70 s, in the second half: {late.first:.1f} ms -> {late.then:.1f} ms"
    )
    assert (late.first, late.then) == pytest.approx((30, 20), rel=0.03)


def test_what_comes_again_and_again_is_how_the_series_is() -> None:
    values = np.full(N, 100.0)
    values[::12] = 200
    found = settle(series(values, "ms", "TTFT p50"))
    assert (found.from_s, found.disturbed) == (0, ())


def test_a_start_within_a_second_is_told_by_its_requests() -> None:
    values = flat_ms(np.random.default_rng(10), 43)
    values[:3] = 200
    one = Series("TTFT p50", "ms", np.concatenate([np.full(3, 0.04), np.arange(1.0, 41)]), values)
    sentence = steadiness([one], 215).sentence()
    assert sentence.startswith("steady within a second: TTFT p50 is 200 ms in the first requests, and then 2")
    assert sentence.endswith("The first requests that were measured are not: a ramp of 1 s leaves them out.")


def test_a_time_of_minutes_has_one_unit() -> None:
    values = np.where(AT < 20, 995_000.0, 200_000.0)
    assert settle(series(values, "ms", "TTFT p50")).sentence() == "TTFT p50 still falls until 20 s: 995 s -> 200 s"


def test_a_change_that_is_sure_and_too_small_to_matter_is_none() -> None:
    rng = np.random.default_rng(5)
    values = np.where(AT < 20, 0.75, 0.78) + rng.normal(0, 0.002, N)
    assert settle(series(values)).from_s == 0
    assert settle(series(100 * values, "ms")).from_s == 0


def test_the_sentence_says_when_and_why() -> None:
    noise = np.random.default_rng(6).normal(0, 0.01, N)
    rising = series(np.where(AT < 42, 0.31, 0.78) + noise)
    still = series(100 + 5 * AT + 100 * noise, "ms", "TTFT p50")
    flat = series(8 + noise, "count", "requests in flight")
    assert steadiness([flat], 500).sentence() == "steady from the start"
    warm = steadiness([rising, flat], 500, measured_from_s=10)
    assert (warm.from_s, warm.declared_is_enough) == (42, False)
    assert warm.sentence() == (
        "steady from 42 s on: hit rate still rises until 42 s: 31.2 % -> 77.9 %. The first 32 s that were measured are "
        "not: a ramp of 42 s leaves them out."
    )
    enough = steadiness([rising, flat], 500, measured_from_s=45)
    assert enough.declared_is_enough is True
    assert enough.sentence().endswith("The ramp of 45 s leaves that out.")
    never = steadiness([rising, still], 500, measured_from_s=45)
    assert (never.from_s, never.declared_is_enough) == (None, False)
    assert "TTFT p50 still rises at 80 s, in the second half: 422 ms -> 547 ms" in never.sentence()
    short = steadiness([series(np.ones(39))], 195)
    assert (short.declared_is_enough, short.sentence()) == (
        None,
        "not known: 195 requests are fewer than the 200 that it takes",
    )


def test_windows_hold_equally_many_requests_in_order_of_sending() -> None:
    sent_s = np.random.default_rng(7).permutation(1_003).astype(float)
    window = windows_of(sent_s)
    sizes = np.bincount(window)
    assert (len(sizes), sizes.min(), sizes.max()) == (100, 10, 11)
    assert (np.diff(window[np.argsort(sent_s)]) >= 0).all()
    assert len(np.bincount(windows_of(np.arange(12.0)))) == 2


def test_the_three_series_by_hand() -> None:
    sent_s = np.arange(10.0)
    cached = np.array([0, 0, 0, 0, 100, 80, 80, 80, 80, 80.0])
    rate = ratio_series("hit rate", sent_s, cached, np.full(10, 100.0))
    assert rate.values.tolist() == [0.2, 0.8]
    assert rate.end_s.tolist() == [4, 9]
    times = median_series("TTFT p50", sent_s, np.array([1, 2, 9, 3, 4, np.nan, 5, 5, 7, 6.0]))
    assert times.values.tolist() == [5]  # nine are known, which is one window of at least five
    times = median_series("TTFT p50", sent_s, np.array([1, 2, 9, 3, 4, 8, 5, 5, 7, 6.0]))
    assert times.values.tolist() == [3, 6]
    # Each takes 2.5 s, so that three are under way from the third on.
    flight = in_flight_series("requests in flight", sent_s, sent_s + 2.5)
    assert flight.values.tolist() == pytest.approx([(1 + 2 + 3 + 3 + 3) / 5, 3])
