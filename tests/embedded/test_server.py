"""How the embedded server starts, takes its options and stops."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from harness.command import kvswarm
from harness.embedded.llama_cpp import engine
from harness.embedded.options import LlamaCppOptions, parse
from harness.embedded.server import RunningServer, running_server
from harness.errors import InputError, KvswarmError
from tests.embedded.dialogue import chat, fresh_words, post

ROOT = Path(__file__).parents[2]
StartServer = Callable[..., RunningServer]


def wait_until_gone(pid: int, deadline_s: float = 20) -> None:
    """Wait until the process has ended, or is only still to be collected by its parent."""
    deadline = time.monotonic() + deadline_s
    stat = Path(f"/proc/{pid}/stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.05)


def test_the_options_are_those_of_the_server(llama_cpp_server: StartServer, tmp_path: Path) -> None:
    server = llama_cpp_server(
        alias="other", context_tokens=1024, slots=2, kv_unified=True, slot_save_path=tmp_path / "new" / "slots"
    )
    root = server.url.removesuffix("/v1")
    props = requests.get(f"{root}/props", timeout=10).json()
    assert props["total_slots"] == 2
    assert props["default_generation_settings"]["n_ctx"] == 1024  # of each slot: the buffer is shared
    assert [model["id"] for model in requests.get(f"{server.url}/models", timeout=10).json()["data"]] == ["other"]
    assert "llamacpp:prompt_tokens_cached_total" in requests.get(f"{root}/metrics", timeout=10).text
    prompt_tokens = post(server, "/completion", {"prompt": fresh_words(20), "n_predict": 1, "id_slot": 0})[
        "tokens_evaluated"
    ]
    saved = post(server, "/slots/0?action=save", {"filename": "a"})
    assert saved["n_saved"] == prompt_tokens
    assert (tmp_path / "new" / "slots" / "a").stat().st_size == saved["n_written"]


def test_an_api_key_is_asked_for_and_is_on_no_command_line(llama_cpp_server: StartServer) -> None:
    server = llama_cpp_server(api_key="sesame")
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "# hello"}], "max_tokens": 1}
    statuses = [
        requests.post(f"{server.url}/chat/completions", json=body, headers=headers, timeout=10).status_code
        for headers in ({}, {"Authorization": "Bearer sesame"})
    ]
    assert statuses == [401, 200]
    assert b"sesame" not in Path(f"/proc/{server.pid}/cmdline").read_bytes()


def test_the_command_line_says_all_options() -> None:
    options = LlamaCppOptions(
        host="::1",
        port=1,
        model=Path("m.gguf"),
        alias="x",
        context_tokens=2,
        slots=3,
        threads=4,
        cache_prompt=False,
        cache_ram_mib=-1,
        kv_unified=True,
        slot_save_path=Path("s"),
        verbose=True,
    )
    assert parse(options.arguments()) == options
    assert parse(LlamaCppOptions().arguments()) == LlamaCppOptions()


def test_a_port_in_use_is_the_users_to_change() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(
                InputError, match=rf"127\.0\.0\.1:{port} \(Address already in use\): stop what uses that port"
            ),
            running_server(LlamaCppOptions(port=port)),
        ):
            pass


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (LlamaCppOptions(slots=0), "cannot have 0 slots"),
        (LlamaCppOptions(port=65536), "65536 is not a port"),
        (LlamaCppOptions(model=Path("/none/m.gguf")), "/none/m.gguf cannot be read"),
        (LlamaCppOptions(host="no.such.host.invalid"), "cannot listen on no.such.host.invalid:0"),
    ],
)
def test_unusable_options_are_refused_in_a_sentence(options: LlamaCppOptions, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence), running_server(options):
        pass


def test_files_that_are_no_model_are_reported(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_text("hello")
    with pytest.raises(InputError, match=r"m\.gguf is not a GGUF file"), running_server(LlamaCppOptions(model=model)):
        pass
    model.write_bytes(b"GGUF" + bytes(100))
    with (
        pytest.raises(KvswarmError, match=r"ended with code 1 before it was up; its log ends: .*failed to load model"),
        running_server(LlamaCppOptions(model=model)),
    ):
        pass


def test_a_server_that_is_not_up_in_time_is_stopped_and_reported(tiny_model: Path, tmp_path: Path) -> None:
    options = LlamaCppOptions(model=tiny_model)
    with (
        pytest.raises(KvswarmError, match="not up within 0 s"),
        running_server(options, log=tmp_path / "log", deadline_s=0),
    ):
        pass


def test_without_the_wheel_the_alternatives_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(
        InputError, match=r"kvswarm\[embedded\].*brew install llama\.cpp.*llama-server --metrics.*--target"
    ):
        engine()

    # the same from the server's process: there, this module stands before the wheel
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('no wheel for this system')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    with pytest.raises(InputError, match=r"no wheel for this system.*llama-server"), running_server(LlamaCppOptions()):
        pass


def test_it_stops_at_once_though_a_request_is_being_served(tiny_model: Path) -> None:
    """llama.cpp's own shutdown would wait for ever; -SIGTERM says that it did not come to SIGKILL."""
    with running_server(LlamaCppOptions(model=tiny_model, slots=1)) as server:
        errors: list[Exception] = []

        def long_request() -> None:
            try:
                chat(server, fresh_words(8000), output_tokens=1000)
            except requests.ConnectionError as error:
                errors.append(error)

        client = threading.Thread(target=long_request)
        client.start()
        deadline = time.monotonic() + 60
        while not requests.get(server.url.replace("/v1", "/slots"), timeout=60).json()[0]["is_processing"]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    client.join(60)
    assert server.process.returncode == -signal.SIGTERM
    assert len(errors) == 1


def test_it_dies_with_the_process_that_started_it(tiny_model: Path, tmp_path: Path) -> None:
    program = (
        "import pathlib, sys, time\n"
        "from harness.embedded.server import LlamaCppOptions, running_server\n"
        "with running_server(LlamaCppOptions(model=pathlib.Path(sys.argv[1]))) as server:\n"
        "    print(server.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(tiny_model)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # a killed process leaves its temporary folder
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    wait_until_gone(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_it_says_what_to_type_and_stops_with_0(tiny_model: Path, number: signal.Signals) -> None:
    program = (
        "import pathlib, sys\n"
        "from harness.embedded.server import LlamaCppOptions, serve\n"
        "sys.exit(serve(LlamaCppOptions(model=pathlib.Path(sys.argv[1]))))\n"
    )
    command = [sys.executable, "-c", program, str(tiny_model)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as foreground:
        assert foreground.stdout is not None
        first, second, third = (foreground.stdout.readline() for _ in range(3))
        url = first.removeprefix("llama.cpp's server listens on ").split(" ")[0]
        assert requests.get(f"{url}/models", timeout=10).status_code == 200
        assert second == f"Next, in another terminal: {kvswarm()} run agent-loop --target {url}\n"
        assert third == "Ctrl-C stops the server.\n"
        foreground.send_signal(number)
        try:
            assert foreground.wait(30) == 0
        finally:
            foreground.kill()
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{url}/models", timeout=10)
