"""Hosts of their own on this machine: network namespaces, joined by two networks that can be cut."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

CLONE_NEWNET = 0x40000000
CONTROL, DATA = "ctl", "dat"
"""The network between master and workers, and the one to the engine; also the names of the hosts' cards."""


def missing() -> str:
    """Why there can be no hosts here; empty: there can."""
    if not shutil.which("ip"):
        return "the command ip (iproute2) is not there"
    trial = f"kv{os.getpid()}-trial"
    done = subprocess.run(["ip", "netns", "add", trial], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"no network namespaces can be made here: {done.stderr.strip()}"
    ip("netns", "del", trial)
    return ""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Host:
    """A namespace with its own cards and addresses."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.namespace = f"kv{os.getpid()}-{name}"
        self.number = number
        ip("netns", "add", self.namespace)
        self.ip("link", "set", "lo", "up")

    def ip(self, *words: str) -> None:
        ip("-n", self.namespace, *words)

    def address(self, network: str) -> str:
        return f"10.77.{(CONTROL, DATA).index(network)}.{self.number}"

    def command(self, *words: str) -> list[str]:
        """As this host would run it, under its own name."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name]
        return ["ip", "netns", "exec", self.namespace, *named, *words]

    def cut(self, network: str) -> None:
        self.ip("link", "set", network, "down")

    def mend(self, network: str) -> None:
        self.ip("link", "set", network, "up")

    def inside(self, make: Callable[[], T]) -> T:
        """What `make` returns; sockets that it opens are this host's."""
        made: list[T] = []

        def work() -> None:
            with Path("/run/netns", self.namespace).open() as file:
                if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            made.append(make())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return made[0]


@contextmanager
def hosts(*names: str) -> Iterator[list[Host]]:
    """The first one has the switch of the control network, the last one that of the data network."""
    made = [Host(name, number) for number, name in enumerate(names, start=1)]
    try:
        _join(CONTROL, made[0], made[1:-1])
        _join(DATA, made[-1], made[:-1])
        yield made
    finally:
        for host in made:
            ip("netns", "del", host.namespace)


def _join(network: str, hub: Host, others: list[Host]) -> None:
    hub.ip("link", "add", network, "type", "bridge", "forward_delay", "0")
    hub.ip("address", "add", f"{hub.address(network)}/24", "dev", network)
    hub.ip("link", "set", network, "up")
    for host in others:
        port = f"{network}-{host.number}"
        hub.ip("link", "add", port, "type", "veth", "peer", "name", network, "netns", host.namespace)
        hub.ip("link", "set", port, "master", network, "up")
        host.ip("address", "add", f"{host.address(network)}/24", "dev", network)
        host.ip("link", "set", network, "up")
