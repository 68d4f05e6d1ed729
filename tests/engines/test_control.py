from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from harness.engines.control import Control, answer_in_short, open_session
from harness.engines.target import Target
from harness.errors import TargetError
from tests.engines.scripted_server import Serve


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def url_of(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}"


def failure(target: Target, url: str) -> str:
    with pytest.raises(TargetError) as caught:
        Control(target).get(url)
    return str(caught.value)


def test_a_port_without_a_server_is_told_as_such(listener: socket.socket) -> None:
    url = url_of(listener)
    listener.close()
    message = failure(Target(url=url), f"{url}/props")
    assert message == f"GET {url}/props failed: nothing listens at {url[7:]}; is the server running, is the port right?"


def test_an_unknown_host_is_told_as_such() -> None:
    url = "http://no-such-host.invalid:8000"
    assert failure(Target(url=url), url).endswith("the host name in no-such-host.invalid:8000 is not known")


def test_a_silent_server_ends_in_a_timeout(listener: socket.socket) -> None:
    url = url_of(listener)
    assert failure(Target(url=url, read_timeout_s=0.2), url) == f"GET {url} failed: no answer in time"


TLS_CALL = """
import sys
from harness.engines.control import Control
from harness.engines.target import Target
from harness.errors import TargetError
try:
    Control(Target(url=sys.argv[1])).get(sys.argv[1])
except TargetError as error:
    print(error)
"""


def test_https_at_a_plain_server_points_to_the_tls_keys(serve: Serve) -> None:
    """In a process of its own: TLS of `requests` breaks where another test has gevent patch it after its import."""
    url = serve({}).replace("http:", "https:")
    command = [sys.executable, "-c", TLS_CALL, url]
    folder = Path(__file__).parents[2]
    message = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=folder).stdout
    assert message.startswith(f"GET {url} failed: TLS failed (")
    assert "see ca_file and tls_verify in docs/targets.md" in message


def test_a_connection_that_the_server_gave_up_is_opened_again(listener: socket.socket) -> None:
    """The server answers one request, then closes the kept connection when the next one comes in on it."""
    served: list[bytes] = []

    def answer_once_each() -> None:
        for _ in range(2):
            connection, _ = listener.accept()
            served.append(connection.recv(10_000))
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            if len(served) == 1:
                connection.recv(10_000)
            connection.close()

    thread = threading.Thread(target=answer_once_each)
    thread.start()
    control = Control(Target(url=url_of(listener)))
    assert control.get_object(f"{url_of(listener)}/a") == {}
    assert control.get_object(f"{url_of(listener)}/b") == {}
    thread.join()
    assert [request.split()[1] for request in served] == [b"/a", b"/b"]


def test_proxies_of_the_environment_are_not_used(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    url = serve({"GET /props": {"a": 1}})
    assert Control(Target(url=url)).get_object(f"{url}/props") == {"a": 1}


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_wants_a_key_says_where_to_put_it(
    serve: Serve, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = serve({"GET /props": (status, {"error": {"message": "Invalid API Key"}})})
    assert failure(Target(url=url), f"{url}/props") == (
        f"GET {url}/props answered {status}: the server wants an API key; put it in an environment variable and name "
        "that as api_key_env in a target file, see docs/targets.md"
    )
    monkeypatch.setenv("KVSWARM_TEST_KEY", "wrong-s3cret")
    message = failure(Target(url=url, api_key_env="KVSWARM_TEST_KEY"), f"{url}/props")
    assert message.endswith("the server refuses the API key in the environment variable KVSWARM_TEST_KEY")


def test_the_key_goes_to_the_targets_server_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVSWARM_TEST_KEY", "s3cret")
    target = Target(url="http://h:8000/v1", api_key_env="KVSWARM_TEST_KEY", headers={"X-Team": "a"})
    assert open_session(target, "http://h:8000/metrics").headers["Authorization"] == "Bearer s3cret"
    elsewhere = open_session(target, "http://h:9090/metrics").headers
    assert "Authorization" not in elsewhere
    assert "X-Team" not in elsewhere


def test_a_page_on_another_host_is_asked_without_the_key(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVSWARM_TEST_KEY", "s3cret")
    seen: list[dict[str, str]] = []

    def answer(request: dict[str, Any]) -> Any:
        seen.append(request["headers"])
        return (401, "no") if len(seen) > 1 else "up 1"

    control = Control(Target(url="http://h", api_key_env="KVSWARM_TEST_KEY", headers={"X-Team": "a"}))
    url = f"{serve({'GET /metrics': answer})}/metrics"
    assert control.get(url).text == "up 1"
    with pytest.raises(TargetError, match="the API key goes to the target's own host and port only"):
        control.get(url)
    assert "authorization" not in seen[0]
    assert "x-team" not in seen[0]


def test_a_missing_ca_file_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"Target h: ca_file .*ca.pem is not there"):
        Control(Target(url="https://h/v1", ca_file=tmp_path / "ca.pem"))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((500, {"error": {"message": "out of memory"}}), "500 (out of memory)"),
        ((400, {"object": "error", "message": "too long"}), "400 (too long)"),
        ((404, {"error": "no such model"}), "404 (no such model)"),
        ((404, {"detail": "Not Found"}), '404 ({"detail": "Not Found"})'),
        ((502, "<html>\n <b>Bad Gateway</b>"), "502 (<html> <b>Bad Gateway</b>)"),
        ((200, ""), "200 (an empty body)"),
        ((200, "x" * 300), f"200 ({'x' * 197}...)"),
        ((200, b"\xff"), "200 (\ufffd)"),
        ((200, [1]), "200 ([1])"),
    ],
)
def test_an_unexpected_answer_is_quoted_in_short(serve: Serve, answer: tuple[int, Any], told: str) -> None:
    url = serve({"GET /x": answer})
    assert answer_in_short(requests.get(f"{url}/x", timeout=5)) == told
    with pytest.raises(TargetError) as caught:
        Control(Target(url=url)).get_object(f"{url}/x")
    assert str(caught.value) == f"GET {url}/x answered {told}"


def test_a_look_up_does_not_wait_for_the_long_timeout_of_requests(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.engines.control.LOOK_UP_TIMEOUT_S", 0.1)

    def slow(_: object) -> dict[str, int]:
        time.sleep(0.5)
        return {"a": 1}

    url = serve({"GET /x": slow, "POST /x": slow})
    control = Control(Target(url=url))
    with pytest.raises(TargetError, match="no answer in time"):
        control.get(f"{url}/x")
    assert control.post_for_object(f"{url}/x", {}) == {"a": 1}
