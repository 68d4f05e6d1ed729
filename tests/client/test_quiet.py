from __future__ import annotations

import os
from collections.abc import Iterator

import gevent
import pytest

from harness.client.quiet import wait_for_quiet

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read_end, write_end = os.pipe()
    yield read_end, write_end
    os.close(read_end)
    os.close(write_end)


def test_what_has_arrived_is_taken_in_before_and_between_the_turns(pipe: Pipe) -> None:
    read_end, write_end = pipe
    order: list[str] = []
    watcher = gevent.get_hub().loop.io(read_end, 1)
    watcher.start(lambda: order.append(os.read(read_end, 10).decode()))

    def work(name: str) -> None:
        wait_for_quiet()
        order.append(name)
        os.write(write_end, f"read after {name}".encode()[:10])

    os.write(write_end, b"read first")
    gevent.joinall([gevent.spawn(work, "1"), gevent.spawn(work, "2")], timeout=5)
    gevent.sleep(0)
    watcher.stop()
    watcher.close()
    assert order[:4] == ["read first", "1", "read after", "2"]


def test_a_loop_that_is_never_idle_holds_nobody_up_for_long(pipe: Pipe) -> None:
    read_end, write_end = pipe
    os.write(write_end, b"never read")
    watcher = gevent.get_hub().loop.io(read_end, 1)
    watcher.start(lambda: None)
    with gevent.Timeout(5):
        for _ in range(3):
            wait_for_quiet()
    watcher.stop()
    watcher.close()
