"""Locust's page: wrong input is answered in the form, before anything starts; the form keeps what was filled in; a tab
is kvswarm's own."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from flask import Response, jsonify, request
from locust.runners import STATE_CLEANUP, STATE_RUNNING, STATE_STOPPING

from harness.errors import InputError, KvswarmError
from harness.swarm.prepare import SEATS, USERS

TAB = {"key": "prefix-cache", "title": "Prefix cache"}
SCRIPT = '<script type="module" src="./kvswarm/assets/tab.js"></script>'
"""Draws into the tab, and explains the fields of the form."""


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


def add_tab(web_ui: Any) -> None:
    """Add the tab, and the script that fills it."""
    web_ui.template_args["extended_tabs"] = [TAB]

    def change(response: Response) -> Response:
        if request.endpoint == "locust.request_stats" and response.is_json:
            stats = response.get_json()
            if stats["state"] in (STATE_STOPPING, STATE_CLEANUP):
                # At any state but running the page stops asking, and would show for ever that the run is being stopped.
                response.set_data(json.dumps({**stats, "state": STATE_RUNNING}))
        elif request.endpoint == "locust.index" and response.mimetype == "text/html":
            response.set_data(response.get_data(as_text=True).replace("</body>", f"{SCRIPT}</body>"))
        return response

    web_ui.app.after_request(change)


def arrange_form(web_ui: Any) -> None:
    """The fields come in the order of the options, hold what was started last, and are explained below themselves."""
    web_ui.app.jinja_env.policies["json.dumps_kwargs"] = {"sort_keys": False}
    locusts = web_ui.update_template_args

    def update_template_args() -> None:
        locusts()
        arguments, options = web_ui.template_args, web_ui.environment.parsed_options
        arguments["num_users"] = arguments["num_users"] or USERS
        arguments["spawn_rate"] = arguments["spawn_rate"] or arguments["num_users"]
        fields = arguments["extra_options"]
        # Locust puts the help into the label, which has room for some words only.
        arguments["kvswarm"] = {"help": {name: field["help_text"] for name, field in fields.items()}, "seats": SEATS}
        for name, field in fields.items():
            field.update(help_text=None, default_value=getattr(options, name))

    web_ui.update_template_args = update_template_args
