"""Users go to the workers that have a part in the run, whoever else is connected to Locust's master."""

from __future__ import annotations

from locust import User
from locust.runners import WorkerNode

from harness.swarm.dealing import PartnersOnly


class Somebody(User):
    abstract = False


def dealt(dispatcher: PartnersOnly, users: int) -> dict[str, int]:
    """Worker -> users, after all of them were started."""
    dispatcher.new_dispatch(users, 100.0)
    last = list(dispatcher)[-1]
    return {worker: sum(of_class.values()) for worker, of_class in last.items()}


def test_one_that_was_refused_gets_none() -> None:
    partners = {"a", "b"}
    nodes = [WorkerNode(name) for name in ("a", "b", "refused")]
    assert dealt(PartnersOnly(partners.__contains__, nodes, [Somebody]), 8) == {"a": 4, "b": 4}


def test_one_that_comes_late_takes_none_away_and_starts_no_dealing() -> None:
    dispatcher = PartnersOnly({"a", "b"}.__contains__, [WorkerNode("a"), WorkerNode("b")], [Somebody])
    before = dealt(dispatcher, 8)
    dispatcher.add_worker(WorkerNode("late"))
    assert dispatcher.dispatch_in_progress  # so Locust does not deal anew
    assert not dispatcher.dispatch_in_progress
    assert dealt(dispatcher, 8) == before
    assert dealt(dispatcher, 10) == {"a": 5, "b": 5}


def test_when_one_is_given_up_the_others_keep_their_users_and_get_its_own() -> None:
    left = [WorkerNode("a"), WorkerNode("b")]
    for node, users in zip(left, (3, 2), strict=True):
        node.user_classes_count = {"Somebody": users}
    dispatcher = PartnersOnly({"a", "b", "lost"}.__contains__, left, [Somebody])
    dispatcher.new_dispatch(8, 2.0)
    dispatcher._wait_between_dispatch = 0.0
    steps = [{worker: users["Somebody"] for worker, users in step.items()} for step in dispatcher]
    assert all(step["a"] >= 3 and step["b"] >= 2 for step in steps)
    assert sum(steps[-1].values()) == 8


def test_one_that_was_lost_and_comes_back_gets_its_own_again() -> None:
    nodes = [WorkerNode("a"), WorkerNode("b")]
    dispatcher = PartnersOnly({"a", "b"}.__contains__, list(nodes), [Somebody])
    before = dealt(dispatcher, 8)
    dispatcher.remove_worker(nodes[1])
    assert dealt(dispatcher, 8) == {"a": 8}
    dispatcher.add_worker(nodes[1])
    assert dealt(dispatcher, 8) == before
