"""Who gets users from Locust: the workers that have a part in the run, and no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from locust.dispatch import UsersDispatcher


class PartnersOnly(UsersDispatcher):
    """Locust's own would give a worker that comes during a run its share at once, and cut sessions short for it."""

    def __init__(self, has_part: Callable[[str], bool], worker_nodes: list[Any], user_classes: list[Any]) -> None:
        """`has_part` is asked with Locust's client id."""
        super().__init__(worker_nodes, user_classes)
        self._has_part = has_part
        self._turned_away = False
        # Locust makes another dispatcher when it gives up a worker. Begun from nothing, it would first stop users.
        for node in worker_nodes:
            self._users_on_workers[node.id].update(node.user_classes_count)

    def new_dispatch(self, *args: Any, **kwargs: Any) -> None:
        for node in list(self._worker_nodes):
            if not self._has_part(node.id):
                self.remove_worker(node)
        super().new_dispatch(*args, **kwargs)

    def add_worker(self, worker_node: Any) -> None:
        self._turned_away = not self._has_part(worker_node.id)
        if not self._turned_away:
            super().add_worker(worker_node)

    @property
    def dispatch_in_progress(self) -> bool:
        """Locust looks here after `add_worker`, and deals users anew where it is False: not for one turned away."""
        turned_away, self._turned_away = self._turned_away, False
        return turned_away or bool(super().dispatch_in_progress)
