"""The Locust user: one live session at a time, with its sub-agents."""

from __future__ import annotations

import gevent
from locust import User, task

from harness.swarm.player import Player
from harness.swarm.worker import WorkerRun


class SessionUser(User):
    """Plays sessions of the run's scenario, one after the other; in an open loop those that arrive, so it may be idle.
    Subclass it in a locustfile."""

    abstract = True
    run_of_this_worker: WorkerRun | None = None
    """Set by `harness.swarm.install` when the plan of a run arrives."""

    def on_start(self) -> None:
        run = SessionUser.run_of_this_worker
        self._run = run
        self._player: Player | None = None if run is None else run.new_player()

    @task
    def play_session(self) -> None:
        """One whole session with its sub-agents; while a run drains, or on a worker that joined too late, wait."""
        if self._run is None or self._player is None or self._run.closed():
            gevent.sleep(0.2)
        else:
            self._run.play_one(self._player)

    def on_stop(self) -> None:
        if self._run is not None and self._player is not None:
            self._run.retire(self._player)

    def wait_time(self) -> float:
        """Think times are the scenario's."""
        return 0.0
