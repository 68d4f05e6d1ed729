"""The options of a run: what the command line and the web form offer, and the one place that validates them."""

from __future__ import annotations

import math
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from locust.util.timespan import parse_timespan

from harness.errors import InputError
from harness.workload.arrivals import parse_arrivals
from harness.workload.rate import parse_rate
from harness.workload.scenario import scenario_names

COLD_STARTS = ("nonce", "reset", "salt", "none")
LOADS = ("closed", "open")
Number = TypeVar("Number", int, float)
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def scenarios_folder() -> Path:
    """`scenarios/` of the directory that Locust was started in, else that of the checkout this package lies in."""
    here = Path("scenarios")
    return here if here.is_dir() else Path(__file__).parents[2] / "scenarios"


class Suggestions(list[str]):
    """Choices that the form offers; the command line may give others, which are judged when they are opened."""

    def __contains__(self, _: object) -> bool:
        return True


def _scenarios(default: str) -> Suggestions:
    """The names in scenarios/ and, so that the form can show it, what this process's command line says."""
    own = ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("--scenario", default=default)
    given: str = own.parse_known_args()[0].scenario
    names = scenario_names(scenarios_folder())
    return Suggestions(names if given in names else [given, *names])


def add_arguments(parser: ArgumentParser, scenario: str) -> None:
    """Add kvswarm's options to Locust's parser; `scenario` is the default one.

    Locust calls this on every load of its page, so it has no side effects. Values must be plain (str, int, ...):
    Locust sends them to the workers with msgpack, and the form returns them in the type of their default.
    """
    add: Any = parser.add_argument  # Locust's parser takes extra keywords (include_in_web_ui, ...)
    add(
        "--scenario", default=scenario, choices=_scenarios(scenario), metavar="NAME|FILE", env_var="KVSWARM_SCENARIO",
        help="what to send: a file in scenarios/ or, on the command line, the path of one",
    )  # fmt: skip
    add(
        "--target", default="", metavar="URL|NAME|FILE,...", env_var="KVSWARM_TARGET",
        help="whom to load: an OpenAI base URL such as http://127.0.0.1:8000/v1, or a file in scenarios/targets; "
        "several with commas between them",
    )  # fmt: skip
    add(
        "--load", default="closed", choices=list(LOADS), env_var="KVSWARM_LOAD",
        help="closed: each user plays one session after the other; open: sessions arrive at a rate, whatever the "
        "answers do, and the users are how many may be live at a time",
    )  # fmt: skip
    add(
        "--rate", default="", metavar="RATE|STAGES", env_var="KVSWARM_RATE",
        help="of an open loop: sessions a second on each target, such as 2, or in stages: 30s:2, 1m:2-20, 20",
    )  # fmt: skip
    add(
        "--arrivals", default="poisson", metavar="poisson|constant|gamma:CV|trace", env_var="KVSWARM_ARRIVALS",
        help="of an open loop: how sessions arrive; gamma:3 in bursts, gamma:0.5 smoother than poisson, trace at the "
        "times of the replayed trace",
    )  # fmt: skip
    add(
        "--sharing", default="", metavar="SHARE", env_var="KVSWARM_SHARING",
        help="share of the prompt tokens that a cache without limits would serve, such as 0.9; empty: as the scenario "
        "has it",
    )  # fmt: skip
    add(
        "--pressure", default="", metavar="TIMES", env_var="KVSWARM_PRESSURE",
        help="working set as a multiple of the server's KV capacity, such as 2; empty: as the scenario has it",
    )  # fmt: skip
    add(
        "--set", dest="changes", default="", metavar="KEY=VALUE;...", env_var="KVSWARM_SET",
        help="other keys of the scenario with other values, such as fault.rate=0.5; seed=2",
    )  # fmt: skip
    add(
        "--stagger", action="store_true", default=False,
        help="begin with sessions that are under way, as if the load had gone on before",
    )  # fmt: skip
    add(
        "--warm-up", default="0s", metavar="TIME",
        help="requests of the first part of the load, so long, are not measured (phase ramp)",
    )  # fmt: skip
    add(
        "--together", action="store_true", default=False,
        help="load several targets at the same time; else one after the other, each for the whole run time",
    )  # fmt: skip
    add(
        "--model", default="", env_var="KVSWARM_MODEL",
        help="model name to ask for; empty: the server's only or first one",
    )  # fmt: skip
    add(
        "--cold-start", default="nonce", choices=list(COLD_STARTS),
        help="how the run begins cold: nonce (texts that no earlier run sent), reset (empty the server's cache), "
        "salt (a cache salt of the run's own: vLLM, SGLang), none",
    )  # fmt: skip
    add(
        "--warm-up-requests", type=int, default=2,
        help="unrelated requests sent one by one before the measured ones",
    )  # fmt: skip
    add(
        "--drain-timeout", type=float, default=60.0, metavar="SECONDS",
        help="seconds that requests in flight may go on when the run is stopped",
    )  # fmt: skip
    add("--results", default="results", metavar="DIR|URL", include_in_web_ui=False, help="where runs are written")
    add(
        "--no-report", action="store_true", default=False, env_var="KVSWARM_NO_REPORT", include_in_web_ui=False,
        help="do not write report.html into the run's directory at its end",
    )  # fmt: skip
    add("--run-id", default="", include_in_web_ui=False, help="name of the run's directory; empty: time and scenario")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options as given, each of the right type; whether scenario and target exist shows when they are opened."""

    scenario: str
    changes: str
    """Keys of the scenario with other values; sharing and pressure are among them."""
    target: str
    together: bool
    users: int | None
    """None: nobody said."""
    run_time_s: float | None
    """For each target; None: until the run is stopped."""
    model: str
    cold_start: str
    warm_up_requests: int
    drain_timeout_s: float
    results: str
    run_id: str
    spawn_rate: float | None = None
    """Users to start each second; None: nobody said, and Locust starts one, or all of an open loop's."""
    load: str = "closed"
    """closed or open."""
    rate: str | None = None
    """As `parse_rate` reads it; None: a closed loop, or the times of a trace."""
    arrivals: str | None = None
    """As `parse_arrivals` reads it; None: a closed loop."""
    stagger: bool = False
    warm_up_s: float = 0.0

    @classmethod
    def from_namespace(cls, given: Namespace) -> RunOptions:
        """Raises InputError for a value that the command line or the form let through."""
        if not given.target.strip():
            raise InputError(
                "No target: say whom to load, such as --target http://127.0.0.1:8000/v1 "
                "(in the form: Host, or Target among the custom parameters)."
            )
        if given.cold_start not in COLD_STARTS:
            raise InputError(f"cold-start is {given.cold_start!r}; it must be one of {', '.join(COLD_STARTS)}.")
        if given.run_id and not RUN_ID.fullmatch(given.run_id):
            raise InputError(f"run-id is {given.run_id!r}; use letters, digits, dot, dash and underscore only.")
        rate, arrivals = _open_loop(given)
        return cls(
            scenario=given.scenario.strip(),
            changes=_changes(given),
            target=given.target.strip(),
            together=given.together in (True, "true"),
            load=given.load,
            rate=rate,
            arrivals=arrivals,
            stagger=given.stagger in (True, "true"),
            warm_up_s=_time_s("warm-up", given.warm_up) or 0.0,
            users=None if given.num_users is None else _number("users", given.num_users, int, upper=1_000_000),
            spawn_rate=None
            if given.spawn_rate is None
            else _number("spawn-rate", given.spawn_rate, float, upper=1_000_000),
            run_time_s=_time_s("run-time", given.run_time),
            model=given.model.strip(),
            cold_start=given.cold_start,
            warm_up_requests=_number("warm-up-requests", given.warm_up_requests, int, upper=1000),
            drain_timeout_s=_number("drain-timeout", given.drain_timeout, float, upper=86400),
            results=given.results,
            run_id=given.run_id,
        )


def _changes(given: Namespace) -> str:
    """Those of --set, with sharing and pressure, which have options of their own."""
    own = [
        f"{name}={_positive(name, text, example)}"
        for name, text, example in (("sharing", given.sharing, "0.9"), ("pressure", given.pressure, "2"))
        if text.strip()
    ]
    keys = {part.partition("=")[0].strip() for part in given.changes.split(";")}
    for change in own:
        if (name := change.partition("=")[0]) in keys:
            raise InputError(
                f"{name} is given twice: as an option, and among the keys of --set; leave out one of them."
            )
    return "; ".join(filter(None, (*own, given.changes.strip())))


def _positive(name: str, text: str, example: str) -> float:
    """More than 0; a sharing is less than 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < (1 if name == "sharing" else math.inf):
        range_ = "between 0 and 1" if name == "sharing" else "above 0"
        raise InputError(f"{name} is {text!r}; it must be a number {range_}, such as {example}, or empty.")
    return number


def _open_loop(given: Namespace) -> tuple[str | None, str | None]:
    """(rate, arrivals), which can be read."""
    if given.load not in LOADS:
        raise InputError(f"load is {given.load!r}; it must be closed or open.")
    text = given.rate.strip()
    if given.load == "closed":
        if text:
            raise InputError(
                f"A rate ({text}) is of an open loop: add --load open (in the form: Load), or leave it out."
            )
        return None, None
    arrivals = parse_arrivals(given.arrivals)
    if arrivals.kind == "trace":
        if text:
            raise InputError(
                f"Sessions arrive at the times of the trace, so a rate ({text}) has no meaning: leave it out; the "
                "scenario's speed scales the times, such as --set times=scaled;speed=2."
            )
        return None, str(arrivals)
    if not text:
        raise InputError(
            "An open loop needs a rate: say how many sessions arrive each second, such as --rate 2 (in the form: Rate)."
        )
    return str(parse_rate(text)), str(arrivals)


def _time_s(name: str, value: Any) -> float | None:
    """In s, from what Locust made of it already, or from what stands in the form."""
    if not value:
        return None
    try:
        return float(parse_timespan(value) if isinstance(value, str) else value)
    except ValueError:
        raise InputError(f"{name} is {value!r}; it must be a time such as 90s, 5m or 1h30m.") from None


def _number(name: str, value: Any, kind: Callable[[Any], Number], upper: int) -> Number:
    """Read as Locust reads it out of the form afterwards, where a number of the wrong kind would be a server error."""
    try:
        number = kind(value)
    except (TypeError, ValueError):
        number = kind(-1)
    if not 0 <= number <= upper:
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"{name} is {value!r}; it must be {what} from 0 to {upper}.")
    return number
