"""A server on loopback that does, byte by byte, what a test scripts; in threads, as the event loop is the client's."""

from __future__ import annotations

import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


class Peer:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._unread = b""

    def read_request(self) -> tuple[bytes, bytes]:
        """Head and body of the next request. Raises ConnectionError if the client closes instead."""
        while b"\r\n\r\n" not in self._unread:
            self._receive()
        head, _, rest = self._unread.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        assert length is not None
        while len(rest) < int(length[1]):
            self._receive()
            rest = self._unread.partition(b"\r\n\r\n")[2]
        self._unread = rest[int(length[1]) :]
        return head, rest[: int(length[1])]

    def send(self, *pieces: bytes, pause_s: float = 0.0) -> int:
        """Send the pieces, each by itself; returns when the first was handed over, in ns since the epoch."""
        stamps = []
        for piece in pieces:
            stamps.append(time.time_ns())
            self.sock.sendall(piece)
            time.sleep(pause_s)
        return stamps[0]

    def reset(self) -> None:
        """Close with a RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        self.sock.close()

    def wait_for_close(self) -> None:
        with suppress(ConnectionError):
            while True:
                self._receive()

    def _receive(self) -> None:
        data = self.sock.recv(65_536)
        if not data:
            raise ConnectionError("closed by the client")
        self._unread += data


Script = Callable[[Peer], None]
"""Serves one connection, which is closed after it."""


@dataclass
class Server:
    port: int
    connections: int = 0
    failures: list[BaseException] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@contextmanager
def scripted_server(script: Script, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Serves connections with `script` until the block ends; what a script raises (but a close) is raised there."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(listener.getsockname()[1])
    threads: list[threading.Thread] = []

    def serve(sock: socket.socket) -> None:
        try:
            if tls is not None:
                sock = tls.wrap_socket(sock, server_side=True)
            script(Peer(sock))
        except (ConnectionError, ssl.SSLError):
            pass
        except BaseException as failure:
            server.failures.append(failure)
        finally:
            sock.close()

    def accept() -> None:
        with suppress(OSError):
            while True:
                sock, _ = listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server.connections += 1
                threads.append(threading.Thread(target=serve, args=(sock,), daemon=True))
                threads[-1].start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    yield server
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    acceptor.join(5)
    for thread in threads:
        thread.join(5)
    if server.failures:
        raise server.failures[0]
