"""Hooks kvswarm into Locust: options, the page's Start button, the messages of a run, signals."""

from __future__ import annotations

import itertools
import signal
from functools import cache
from typing import Any

import gevent
import locust
from locust import argument_parser
from locust.runners import LocalRunner, WorkerRunner

from harness.swarm.handshake import own_credentials
from harness.swarm.master_side import MasterSide, give_up
from harness.swarm.options import add_arguments
from harness.swarm.ports import check_when_parsed
from harness.swarm.presence import be_patient
from harness.swarm.worker_side import WorkerSide

_installed = False


def install(scenario: str) -> None:
    """Call once from a locustfile; `scenario` is the default of --scenario. Later calls change nothing."""
    global _installed
    if _installed:
        return
    _installed = True
    own_credentials()  # of the files as they are now, and before worker processes are forked
    be_patient()
    events: Any = locust.events
    parsers = itertools.count()

    def on_parser(parser: Any, **_: Any) -> None:
        add_arguments(parser, scenario)
        if next(parsers) == 0:  # later ones are made when the page is loaded
            check_when_parsed(parser, give_up)

    events.init_command_line_parser.add_listener(on_parser)
    events.init.add_listener(_on_init)


def _on_init(environment: Any, runner: Any, web_ui: Any, **_: Any) -> None:
    # Python's own handler would raise KeyboardInterrupt inside whatever greenlet runs, in the middle of a read.
    hub = gevent.get_hub()
    gevent.signal_handler(signal.SIGINT, hub.handle_system_error, KeyboardInterrupt, KeyboardInterrupt())
    if isinstance(runner, WorkerRunner):
        # Each time Locust tells a worker of users, the worker asks for these once for each option, and makes a parser
        # each time: the loop would stand still for a quarter of a second, again and again while users are spawned.
        argument_parser.default_args_dict = cache(argument_parser.default_args_dict)
    if isinstance(runner, (WorkerRunner, LocalRunner)):
        WorkerSide(environment, runner)
    if not isinstance(runner, WorkerRunner):
        MasterSide(environment, runner, web_ui)
