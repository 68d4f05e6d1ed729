"""The ports that a Locust process will listen on, looked at before it does; Locust would die with a traceback."""

from __future__ import annotations

import socket
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from harness.errors import InputError


def check_when_parsed(parser: ArgumentParser, give_up: Callable[[InputError], None]) -> None:
    """Let `parser` look at the ports of the options that it parses, and call `give_up` if one is taken.

    Parsing the command line is the last thing that Locust does before it opens its ports.
    """
    parse_args: Callable[..., Namespace] = parser.parse_args

    def parse_and_check(*args: object, **kwargs: object) -> Namespace:
        options = parse_args(*args, **kwargs)
        try:
            check_ports(options)
        except InputError as error:
            give_up(error)
        return options

    setattr(parser, "parse_args", parse_and_check)  # noqa: B010  # mypy forbids to assign a method


def check_ports(options: Namespace) -> None:
    """Raises InputError if the page's or the master's port cannot be had."""
    if options.worker:
        return
    if options.master or options.processes:
        _check(options.master_bind_host, options.master_bind_port, "Locust's master", "--master-bind-port")
    if not options.headless:
        _check(options.web_host, options.web_port, "Locust's page", "--web-port")


def _check(host: str, port: int, who: str, option: str) -> None:
    host = "" if host == "*" else host
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InputError(
                f"{who} cannot listen on {host or '*'}:{port} ({error.strerror}); choose another port with {option}."
            ) from error
