"""What a run of a sweep or a search is told: keys of the load by options, all others by the scenario."""

from __future__ import annotations

import pytest

from harness.errors import InputError
from harness.launch import Swarm
from harness.variants import varied

SWARM = Swarm("agent-loop", "http://127.0.0.1:1/v1", changes="seed=5", extra=("--warm-up", "5s"))


def test_a_key_of_the_scenario_is_set_beside_the_others() -> None:
    made = varied(SWARM, "pressure=2")
    assert (made.changes, made.extra, made.users) == ("seed=5; pressure=2", SWARM.extra, None)


def test_a_rate_makes_an_open_loop_in_which_requests_may_fail() -> None:
    made = varied(SWARM, "rate=2.5")
    assert made.changes == "seed=5"
    assert made.extra == ("--exit-code-on-error", "0", "--warm-up", "5s", "--load", "open", "--rate", "2.5")
    assert varied(SWARM, "arrivals=gamma:3").extra[-4:] == ("--load", "open", "--arrivals", "gamma:3")


def test_users_are_started() -> None:
    made = varied(SWARM, "users=8")
    assert made.users == 8
    assert "open" not in made.extra


@pytest.mark.parametrize("users", ["0", "-1", "2.5", "many"])
def test_users_are_whole_numbers(users: str) -> None:
    with pytest.raises(InputError, match="whole numbers above 0"):
        varied(SWARM, f"users={users}")
