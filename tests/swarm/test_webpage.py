"""What is added to Locust's page: checked input, the order and values of the form, and the tab."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Blueprint, Flask, jsonify, render_template_string

from harness.errors import TargetError
from harness.swarm import webpage
from harness.swarm.prepare import USERS


class Page:
    """As much of Locust's page as kvswarm has to do with."""

    def __init__(self) -> None:
        self.app = Flask("page")
        self.template_args: dict[str, Any] = {}
        options = Namespace(target="", scenario="agent-loop", num_users=None, warm_up=0)
        self.environment = SimpleNamespace(parsed_options=options, host=None)
        self.state = "running"
        self.starts = 0
        self.asked: list[Namespace] = []
        blueprint = Blueprint("locust", "page")
        blueprint.add_url_rule("/swarm", "swarm", self.swarm, methods=["POST"])
        blueprint.add_url_rule("/stats/requests", "request_stats", lambda: jsonify({"state": self.state, "stats": []}))
        blueprint.add_url_rule("/", "index", self.index)
        blueprint.add_url_rule("/stop", "stop", lambda: jsonify({"success": True}))
        self.called_off = 0
        webpage.attach(self, self.make_ready, self.call_off)
        webpage.add_tab(self)
        webpage.arrange_form(self)
        self.app.register_blueprint(blueprint)

    def auth_required_if_enabled(self, view: Any) -> Any:
        return view

    def make_ready(self, options: Namespace) -> None:
        self.asked.append(options)
        if options.target == "bad":
            raise TargetError("No target 'bad'.")

    def call_off(self) -> None:
        self.called_off += 1

    def swarm(self) -> Any:
        self.starts += 1
        return jsonify({"success": True})

    def update_template_args(self) -> None:
        """As Locust does it, from its command line."""
        fields = {name: {"default_value": "", "help_text": f"about {name}"} for name in ("target", "scenario")}
        self.template_args |= {"num_users": None, "spawn_rate": None, "extra_options": fields}

    def index(self) -> str:
        self.update_template_args()
        return render_template_string("<body>{{ args|tojson }}</body>", args=self.template_args)

    def start(self, **form: str) -> Any:
        return self.app.test_client().post("/swarm", data=form).json

    def stats(self) -> Any:
        return self.app.test_client().get("/stats/requests").json


@pytest.fixture
def page() -> Page:
    return Page()


def test_the_form_goes_before_the_command_line(page: Page) -> None:
    page.environment.parsed_options.target = "http://127.0.0.1:1/v1"
    assert page.start(target="http://127.0.0.1:2/v1", user_count="3", host="") == {"success": True}
    assert page.asked == [Namespace(target="http://127.0.0.1:2/v1", scenario="agent-loop", num_users="3", warm_up=0)]
    assert page.starts == 1


def test_wrong_input_is_answered_in_the_form_and_starts_nothing(page: Page) -> None:
    answer = page.start(target="bad")
    assert (answer["success"], answer["message"]) == (False, "No target 'bad'.")
    assert page.starts == 0


def test_host_serves_as_target(page: Page) -> None:
    assert page.start(host=" http://127.0.0.1:2/v1", target="")["success"]
    assert page.environment.host == "http://127.0.0.1:2/v1"


def test_two_targets_are_refused_until_one_is_emptied(page: Page) -> None:
    both = {"host": "http://127.0.0.1:1/v1", "target": "http://127.0.0.1:2/v1"}
    for _ in range(2):
        message = page.start(**both)["message"]
        assert all(url in message for url in both.values())
    assert page.starts == 0
    assert page.start(**both | {"host": ""})["success"]
    assert page.start(**both | {"target": ""})["success"]
    # The page now shows the host of the last run by itself.
    assert page.start(**both)["success"]


def test_the_tab_is_locusts_and_a_script_of_ours_fills_it(page: Page) -> None:
    html = page.app.test_client().get("/").text
    assert html.endswith('<script type="module" src="./kvswarm/assets/tab.js"></script></body>')
    (tab,) = page.template_args["extended_tabs"]
    assert tab["title"] == "Prefix cache"


def test_the_form_keeps_its_order_and_what_was_started_last(page: Page) -> None:
    page.environment.parsed_options.target = "http://127.0.0.1:1/v1"
    html = page.app.test_client().get("/").text
    assert html.index('"target":') < html.index('"scenario":')  # as the options come, not by the alphabet
    shown = page.template_args
    assert shown["extra_options"]["target"]["default_value"] == "http://127.0.0.1:1/v1"
    assert shown["extra_options"]["scenario"] == {"default_value": "agent-loop", "help_text": None}
    assert shown["kvswarm"]["help"] == {"target": "about target", "scenario": "about scenario"}
    assert shown["num_users"] == shown["spawn_rate"] == USERS


@pytest.mark.parametrize(
    ("state", "shown"),
    [("running", "running"), ("stopping", "running"), ("cleanup", "running"), ("stopped", "stopped")],
)
def test_the_page_goes_on_asking_until_the_run_has_stopped(page: Page, state: str, shown: str) -> None:
    page.state = state
    assert page.stats()["state"] == shown


def test_the_stop_button_calls_off_the_targets_that_have_not_had_their_turn(page: Page) -> None:
    assert page.app.test_client().get("/stop").json == {"success": True}
    assert page.called_off == 1
    page.stats()
    assert page.called_off == 1
