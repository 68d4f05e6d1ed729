"""Options: what the command line and the form offer, and the sentences about what cannot be."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
from locust.argument_parser import LocustArgumentParser

from harness.errors import InputError
from harness.swarm.options import RunOptions, add_arguments


@pytest.fixture(autouse=True)
def command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["locust"])
    monkeypatch.delenv("KVSWARM_SCENARIO", raising=False)
    monkeypatch.delenv("KVSWARM_TARGET", raising=False)


def parser() -> Any:
    made = LocustArgumentParser()
    add_arguments(made, "agent-loop")
    made.set_defaults(run_time=0, num_users=1, spawn_rate=1.0)  # Locust's own options
    return made


def parse(*words: str) -> Namespace:
    parsed: Namespace = parser().parse_args(list(words))
    return parsed


def choices(dest: str) -> list[str]:
    return next(list(action.choices) for action in parser()._actions if action.dest == dest)


def test_a_target_is_all_that_must_be_given() -> None:
    options = RunOptions.from_namespace(parse("--target", "http://127.0.0.1:8000/v1"))
    assert options == RunOptions(
        scenario="agent-loop",
        changes="",
        target="http://127.0.0.1:8000/v1",
        together=False,
        users=1,
        run_time_s=None,
        model="",
        cold_start="nonce",
        warm_up_requests=2,
        drain_timeout_s=60.0,
        results="results",
        run_id="",
        spawn_rate=1.0,
    )


def test_sharing_and_pressure_are_keys_of_the_scenario() -> None:
    words = ("--target", "t", "--sharing", "0.9", "--pressure", " 2 ", "--set", "seed=2; fault.rate=0.5")
    changes = RunOptions.from_namespace(parse(*words)).changes
    assert changes == "sharing=0.9; pressure=2.0; seed=2; fault.rate=0.5"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--sharing", "90"), "sharing is '90'; it must be a number between 0 and 1, such as 0.9, or empty."),
        (("--pressure", "high"), "pressure is 'high'; it must be a number above 0, such as 2, or empty."),
        (("--pressure", "nan"), "pressure is 'nan'; it must be a number above 0, such as 2, or empty."),
        (
            ("--pressure", "2", "--set", "seed=1; pressure=3"),
            "pressure is given twice: as an option, and among the keys of --set; leave out one of them.",
        ),
    ],
)
def test_a_sharing_or_pressure_that_cannot_be(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        RunOptions.from_namespace(parse("--target", "t", *words))
    assert str(error.value) == sentence


def test_options_are_plain_values_so_that_locust_can_send_them_to_workers() -> None:
    words = ("--scenario", "some/where.yaml", "--drain-timeout", "3", "--warm-up-requests", "0")
    assert {type(value) for value in vars(parse(*words)).values()} <= {str, int, float, bool}


def test_the_form_offers_the_scenarios_of_the_folder() -> None:
    assert {"agent-loop", "long-document", "multi-round"} <= set(choices("scenario"))


def test_the_command_line_may_name_a_file_which_the_form_then_offers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["locust", "--scenario", "own/chat.yaml", "--headless"])
    assert parse("--scenario", "own/chat.yaml").scenario == "own/chat.yaml"
    assert choices("scenario")[0] == "own/chat.yaml"
    assert "agent-loop" in choices("scenario")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": " "}, ["No target", "--target http"]),
        ({"cold_start": "warm"}, ["cold-start", "'warm'", "nonce, reset, salt, none"]),
        ({"run_id": "../other"}, ["run-id", "'../other'"]),
        ({"run_id": "latest run"}, ["run-id"]),
        ({"warm_up_requests": -1}, ["warm-up-requests", "-1", "from 0 to 1000"]),
        ({"warm_up_requests": 1001}, ["warm-up-requests", "1001"]),
        ({"warm_up_requests": "2.5"}, ["warm-up-requests", "'2.5'", "whole number"]),
        ({"warm_up_requests": "two"}, ["warm-up-requests", "'two'"]),
        ({"warm_up_requests": None}, ["warm-up-requests", "None"]),
        ({"drain_timeout": "nan"}, ["drain-timeout", "'nan'"]),
        ({"drain_timeout": "inf"}, ["drain-timeout"]),
        ({"run_time": "soon"}, ["run-time", "'soon'", "90s"]),
        ({"drain_timeout": ""}, ["drain-timeout", "''"]),
    ],
)
def test_what_cannot_be_is_named(changes: dict[str, Any], words: list[str]) -> None:
    given = parse("--target", "http://127.0.0.1:8000/v1")
    with pytest.raises(InputError) as error:
        RunOptions.from_namespace(Namespace(**{**vars(given), **changes}))
    assert all(word in str(error.value) for word in words), error.value


def test_text_from_the_form_becomes_numbers_and_loses_its_spaces() -> None:
    given = vars(parse())
    form = {"target": " local ", "model": " m ", "warm_up_requests": "3", "drain_timeout": "1.5"}
    options = RunOptions.from_namespace(Namespace(**{**given, **form}))
    assert (options.target, options.model) == ("local", "m")
    assert (options.warm_up_requests, options.drain_timeout_s) == (3, 1.5)


@pytest.mark.parametrize(("given", "seconds"), [("", None), (None, None), ("90s", 90.0), ("1m30s", 90.0), (45, 45.0)])
def test_a_run_time_comes_as_text_from_the_form_and_as_seconds_from_the_command_line(
    given: Any, seconds: float | None
) -> None:
    options = Namespace(**{**vars(parse("--target", "local")), "run_time": given})
    assert RunOptions.from_namespace(options).run_time_s == seconds


@pytest.mark.parametrize(("given", "together"), [(True, True), (False, False), ("true", True), ("false", False)])
def test_the_form_says_in_words_whether_targets_are_loaded_together(given: Any, together: bool) -> None:
    options = Namespace(**{**vars(parse("--target", "a,b")), "together": given})
    assert RunOptions.from_namespace(options).together is together


def test_an_open_loop_has_a_rate_and_poisson_arrivals_if_nobody_says_otherwise() -> None:
    options = RunOptions.from_namespace(parse("--target", "local", "--load", "open", "--rate", " 30s:2, 20 "))
    assert (options.load, options.rate, options.arrivals) == ("open", "30s:2, 20", "poisson")
    options = RunOptions.from_namespace(parse("--target", "local", "--load", "open", "--arrivals", "trace"))
    assert (options.rate, options.arrivals) == (None, "trace")
    closed = RunOptions.from_namespace(parse("--target", "local"))
    assert (closed.load, closed.rate, closed.arrivals, closed.stagger, closed.warm_up_s) == (
        "closed", None, None, False, 0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"load": "half-open"}, ["load", "'half-open'", "closed or open"]),
        ({"load": "open"}, ["An open loop needs a rate", "--rate 2"]),
        ({"rate": "2"}, ["A rate (2)", "--load open"]),
        ({"load": "open", "rate": "fast"}, ["rate is 'fast'"]),
        ({"load": "open", "rate": "2", "arrivals": "bursts"}, ["arrivals is 'bursts'", "gamma:3"]),
        ({"load": "open", "rate": "2", "arrivals": "trace"}, ["a rate (2) has no meaning", "speed"]),
        ({"warm_up": "soon"}, ["warm-up is 'soon'", "90s"]),
        ({"spawn_rate": "x"}, ["spawn-rate", "'x'"]),
    ],
)
def test_a_load_that_cannot_be_is_named(changes: dict[str, Any], words: list[str]) -> None:
    given = parse("--target", "http://127.0.0.1:8000/v1")
    with pytest.raises(InputError) as error:
        RunOptions.from_namespace(Namespace(**{**vars(given), **changes}))
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(("given", "seconds"), [("0s", 0.0), ("1m30s", 90.0), ("20", 20.0), ("", 0.0)])
def test_a_warm_up_is_a_time(given: str, seconds: float) -> None:
    assert RunOptions.from_namespace(parse("--target", "local", "--warm-up", given)).warm_up_s == seconds
