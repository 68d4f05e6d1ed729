"""The process of a simulated engine: how it starts, what it says, how it stops."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from typer.testing import CliRunner

from harness.cli import app
from harness.client.timed import TimedClient
from harness.command import kvswarm
from harness.embedded.server import running_server
from harness.engines.detect import connect
from harness.engines.target import Target
from harness.errors import InputError
from harness.sim.command_line import sim
from harness.sim.options import MannerName, SimOptions
from tests.bench.simulator_speed import measure
from tests.embedded.test_server import wait_until_gone

ROOT = Path(__file__).parents[2]
MANNERS: tuple[MannerName, ...] = ("vllm", "sglang", "llama-cpp", "mlx-lm")


@pytest.mark.parametrize("manner", MANNERS)
def test_it_says_where_it_is_in_one_line_and_is_taken_for_what_it_simulates(manner: MannerName, tmp_path: Path) -> None:
    options = SimOptions(manner=manner, alias="small", request_log=str(tmp_path / "ids"))
    with running_server(options, log=tmp_path / "log") as server:
        assert (tmp_path / "log").read_text() == f"{options.title} listens on {server.url}\n"
        assert server.target == server.url
        engine = connect(Target(url=server.url))
        assert engine.name == manner
        identity = engine.identify()
        assert identity.version is not None
        assert "simulated" in identity.version
        before = (tmp_path / "ids").read_text().splitlines()
        for request_id in ("one", "two"):
            asked: Any = {"model": identity.model, "messages": [{"role": "user", "content": "word"}], "max_tokens": 1}
            headers = {"X-Request-Id": request_id}
            assert requests.post(f"{server.url}/chat/completions", json=asked, headers=headers, timeout=30).ok
        assert (tmp_path / "ids").read_text().splitlines() == [*before, "one", "two"]
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{server.url}/models", timeout=10)


def test_a_connection_is_kept_from_one_request_to_the_next() -> None:
    with running_server(SimOptions(manner="vllm")) as server:
        target = Target(url=server.url)
        engine = connect(target)
        client = TimedClient(target, engine.read_event)
        body = engine.chat_payload([{"role": "user", "content": "time"}], 2)
        replies = [client.post("/chat/completions", body, {}, lambda reply: None) for _ in range(3)]
        client.close()
    assert [reply.status for reply in replies] == ["ok"] * 3
    assert [reply.connect_ms is None for reply in replies] == [False, True, True]
    assert {reply.replica for reply in replies} == {None}


@pytest.mark.parametrize("manner", MANNERS)
def test_256_streams_at_once_get_every_token(manner: MannerName) -> None:
    options = SimOptions(
        manner=manner, time_scale=1e4, slots=256, kv_tokens=256 * 512, context_tokens=512, alias="tiny"
    )
    model = "default_model" if manner == "mlx-lm" else "tiny"
    with running_server(options) as server:
        count = measure(server, model, streams=256, tokens=10)
    more = count.events - 256 * 10  # of each stream a role, usage and [DONE], as far as the engine sends them
    assert more % 256 == 0
    assert 1 <= more // 256 <= 4


def test_the_command_line_of_the_process_says_all_options_but_the_key() -> None:
    options = SimOptions(
        manner="llama-cpp",
        preset="h100-8b",
        kv_tokens=4096,
        slots=2,
        prefix_caching=False,
        time_scale=2.5,
        faults=("stall:1", "no-done@0.5"),
        replicas=3,
        router="prefix",
        replica=1,
        host="::1",
        api_key="sesame",
    )
    *words, text = options.arguments(18_000)
    assert words == ["-m", "harness.sim"]
    assert "sesame" not in text
    with pytest.MonkeyPatch.context() as environment:
        for name, value in options.environment(ROOT).items():
            environment.setenv(name, value)
        again = SimOptions.from_json(text)
    assert again == replace(options, port=18_000)


@pytest.mark.parametrize("manner", MANNERS)
def test_an_api_key_is_asked_for(manner: MannerName) -> None:
    if manner == "mlx-lm":  # the real server knows no key
        return
    with running_server(SimOptions(manner=manner, api_key="sesame")) as server:
        bodies: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1, "model": "tiny"}
        statuses = [
            requests.post(f"{server.url}/chat/completions", json=bodies, headers=headers, timeout=10).status_code
            for headers in ({}, {"Authorization": "Bearer sesame"})
        ]
        assert statuses == [401, 200]
        assert b"sesame" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--manner", "tgi"], "--manner is 'tgi': choose one of vllm, sglang, llama-cpp, mlx-lm."),
        (["--router", "random"], "--router is 'random': choose one of round-robin, prefix."),
        (["--preset", "abacus"], "There is no preset abacus: choose one of "),
        (["--fault", "flood"], "There is no fault 'flood': choose one of "),
        (["--replicas", "0"], "0 replicas cannot be started: choose from 1 to 64."),
        (["--port", "70000"], "70000 is not a port"),
        (["--kv-tokens", "0"], "KV"),
    ],
)
def test_bad_input_is_told_in_a_sentence(words: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["serve", "sim", *words])
    assert isinstance(result.exception, InputError)
    assert sentence in str(result.exception)
    assert result.exception.exit_code == 2


def test_without_its_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvloop" else find(name))
    with pytest.raises(InputError, match=r"need uvloop: install the extra \(pip install 'kvswarm\[sim\]'\)"):
        SimOptions(manner="vllm").check()


def test_every_option_of_the_command_is_on_the_page() -> None:
    page = (ROOT / "docs" / "simulator.md").read_text()
    (table,) = re.findall(r"^\| option \|.*\n(?:\|.*\n)+", page, re.MULTILINE)
    listed = re.findall(r"`--([a-z-]+)`", "".join(line.split("|")[1] for line in table.splitlines()))
    assert sorted(listed) == sorted(name.replace("_", "-") for name in inspect.signature(sim).parameters)


@pytest.mark.parametrize("replicas", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_it_says_what_to_type_and_stops_with_0(number: signal.Signals, replicas: str) -> None:
    command = [sys.executable, "-m", "harness.cli", "serve", "sim", "--port", "0", "--replicas", replicas]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as foreground:
        assert foreground.stdout is not None
        first, second, third = (foreground.stdout.readline() for _ in range(3))
        url = first.removeprefix("Simulated vLLM listens on ").split(" ")[0]
        assert requests.get(f"{url}/models", timeout=10).status_code == 200
        target = second.rstrip().removeprefix(f"Next, in another terminal: {kvswarm()} run agent-loop --target ")
        assert target == url if replicas == "1" else Path(target).is_file()
        assert third == "Ctrl-C stops the server.\n"
        foreground.send_signal(number)
        try:
            assert foreground.wait(30) == 0
        finally:
            foreground.kill()
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{url}/models", timeout=10)


@pytest.mark.parametrize("replicas", [1, 3])
def test_it_dies_with_the_process_that_started_it(replicas: int, tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from harness.embedded.server import running_server\n"
        "from harness.sim.options import SimOptions\n"
        "with running_server(SimOptions(manner='vllm', replicas=int(sys.argv[1]))) as server:\n"
        "    print(server.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(replicas)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # a killed process leaves its temporary folder
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        leader = int(parent.stdout.readline())
        others = children(leader)
        assert len(others) == (replicas if replicas > 1 else 0)
        parent.kill()
    for pid in (leader, *others):
        wait_until_gone(pid)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
