"""Locust's page: wrong input is answered in the form, before anything starts; a tab shows the run's figures."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from flask import Response, jsonify, request
from locust.runners import STATE_CLEANUP, STATE_RUNNING, STATE_STOPPING

from harness.errors import InputError, KvswarmError
from harness.swarm.live import COLUMNS

TAB = "kvswarm"


def attach(web_ui: Any, make_ready: Callable[[Namespace], None], call_off: Callable[[], None]) -> None:
    """Run `make_ready` on the form's values before Locust's own handler of the Start button does anything.

    `call_off` is called before that of the Stop button.
    """
    environment = web_ui.environment

    def before_start() -> Response | None:
        options = vars(environment.parsed_options)
        form = {key: value for key, value in request.form.items() if key in options}
        form["num_users"] = request.form.get("user_count", options["num_users"])
        try:
            _take_host(environment, form.get("target", ""))
            make_ready(Namespace(**{**options, **form}))
        except KvswarmError as error:
            return jsonify({"success": False, "message": str(error), "host": environment.host})
        return None

    guarded = web_ui.auth_required_if_enabled(before_start)

    def intercept() -> Any:
        if request.method == "POST" and request.endpoint == "locust.swarm":
            return guarded()
        if request.endpoint == "locust.stop":
            return web_ui.auth_required_if_enabled(call_off)()
        return None

    web_ui.app.before_request(intercept)


def _take_host(environment: Any, target: str) -> None:
    """The field Host serves as target where that is empty. Raises InputError if both were filled in, and differ."""
    host = request.form.get("host", "").strip()
    if host and target and host not in (target, environment.host):
        raise InputError(f"Host is {host}, but Target (among the custom parameters) is {target}: empty one of them.")
    if host:
        environment.host = host


def add_tab(web_ui: Any, rows: Callable[[], list[dict[str, Any]]]) -> None:
    """Add a tab with the table that `rows` gives each time that the page asks how the run goes."""
    structure = [{"key": key, "title": title} for key, title in COLUMNS.items()]
    web_ui.template_args.update(
        extended_tabs=[{"key": TAB, "title": TAB}], extended_tables=[{"key": TAB, "structure": structure}]
    )

    def add_rows(response: Response) -> Response:
        if request.endpoint == "locust.request_stats" and response.is_json:
            stats = {**response.get_json(), "extended_stats": [{"key": TAB, "data": rows()}]}
            if stats["state"] in (STATE_STOPPING, STATE_CLEANUP):
                # At any state but running the page stops asking, and would show for ever that the run is being stopped.
                stats["state"] = STATE_RUNNING
            response.set_data(json.dumps(stats))
        return response

    web_ui.app.after_request(add_rows)
