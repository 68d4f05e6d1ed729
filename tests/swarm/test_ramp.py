"""The part of a load that is not measured, and Locust's own statistics, which begin anew after it."""

from __future__ import annotations

import time
from typing import Any, cast

import gevent
import pytest
from locust.env import Environment

from harness.swarm.plan import LoadPlan
from harness.swarm.ramp import Ramp, attach

S = 1_000_000_000


def test_a_load_without_ramp_and_warm_up_is_measured_from_its_start() -> None:
    ramp = Ramp(LoadPlan(100 * S))
    assert (ramp.is_over(100 * S - 1), ramp.is_over(100 * S)) == (False, True)
    assert ramp.all_users_started() is None


def test_a_ramp_lasts_until_all_users_are_there() -> None:
    ramp = Ramp(LoadPlan(100 * S, ramps=True))
    assert not ramp.is_over(time.time_ns())
    assert ramp.all_users_started() == 0.0
    assert ramp.is_over(time.time_ns())
    assert ramp.ends_ns is not None
    assert not ramp.is_over(ramp.ends_ns - 1)  # what was sent before stays in it
    assert ramp.all_users_started() is None  # as when somebody edits their number


def test_a_warm_up_may_outlast_the_ramp_or_end_before_it() -> None:
    long = Ramp(LoadPlan(time.time_ns(), ramps=True, warm_up_s=60.0))
    assert long.all_users_started() == pytest.approx(60, abs=5)
    assert not long.is_over(time.time_ns())
    short = Ramp(LoadPlan(time.time_ns() - 61 * S, ramps=True, warm_up_s=60.0))
    assert short.all_users_started() == 0.0


@pytest.mark.parametrize(("load", "left"), [(LoadPlan(1, ramps=True), 0), (LoadPlan(1), 1)])
def test_locusts_statistics_begin_anew_at_the_end_of_a_ramp_and_only_then(load: LoadPlan, left: int) -> None:
    environment = cast(Any, Environment())
    runner = environment.create_local_runner()
    current = Ramp(load)
    attach(environment, runner, lambda: current)
    runner.stats.log_request("POST", "a", 5.0, 1)
    environment.events.spawning_complete.fire(user_count=1)
    gevent.sleep(0.01)
    assert runner.stats.total.num_requests == left
    runner.stats.log_request("POST", "a", 5.0, 1)
    environment.events.spawning_complete.fire(user_count=2)  # somebody edits the number of users
    gevent.sleep(0.01)
    assert runner.stats.total.num_requests == left + 1


def test_a_ramp_of_a_leg_that_is_over_resets_nothing() -> None:
    environment = cast(Any, Environment())
    runner = environment.create_local_runner()
    ramps = [Ramp(LoadPlan(time.time_ns(), warm_up_s=0.02))]
    attach(environment, runner, lambda: ramps[-1])
    environment.events.spawning_complete.fire(user_count=1)
    ramps.append(Ramp(LoadPlan(1)))
    runner.stats.log_request("POST", "a", 5.0, 1)
    gevent.sleep(0.05)
    assert runner.stats.total.num_requests == 1
