"""The Start button of Locust's page: wrong input is answered in the form, before anything starts."""

from __future__ import annotations

import errno
import socket
import sys
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from flask import Response, jsonify, request

from harness.errors import KvswarmError


def attach(web_ui: Any, make_ready: Callable[[Namespace], None]) -> None:
    """Run `make_ready` on the form's values before Locust's own handler of the Start button does anything."""
    environment = web_ui.environment

    def before_start() -> Response | None:
        options = vars(environment.parsed_options)
        form = {key: value for key, value in request.form.items() if key in options}
        if request.form.get("host"):
            environment.host = request.form["host"]
        try:
            make_ready(Namespace(**{**options, **form}))
        except KvswarmError as error:
            return jsonify({"success": False, "message": str(error), "host": environment.host})
        return None

    guarded = web_ui.auth_required_if_enabled(before_start)

    def intercept() -> Any:
        if request.method == "POST" and request.endpoint == "locust.swarm":
            return guarded()
        return None

    web_ui.app.before_request(intercept)


def check_port(host: str, port: int) -> None:
    """End the process with one sentence (exit code 2) if the page's port is taken, where Locust logs a traceback."""
    probe = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind((host, port))
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL):
            raise
        place = f"{host or '*'}:{port}"
        sys.stderr.write(
            f"kvswarm: Locust's page cannot listen on {place} ({error.strerror}); choose another with --web-port.\n"
        )
        sys.exit(2)
    finally:
        probe.close()
