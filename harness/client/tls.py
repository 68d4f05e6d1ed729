"""TLS through memory buffers, so that the event loop reads its socket like any other."""

from __future__ import annotations

import contextlib
import functools
import socket
import ssl
import time
from pathlib import Path

import certifi

from harness.client.channel import READ, READ_BYTES, Wait, send_all
from harness.client.stamps import Clock
from harness.errors import TargetError


@functools.lru_cache
def client_context(verify: bool, ca_file: Path | None) -> ssl.SSLContext:
    """Settings shared by all connections: loading the certificates takes longer than many a request.

    `verify=False` takes any certificate; without `ca_file` (PEM) those that the `certifi` package lists are trusted.
    Raises TargetError if the file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=str(ca_file or certifi.where()))
    except OSError as error:
        raise TargetError(f"cannot read CA certificates from ca_file {ca_file}: {error}; give a PEM file") from error
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class TlsChannel:
    """A connected socket under TLS.

    A record can be complete long after its first packet, so what it carries is stamped here, when it is decrypted.
    """

    clock: Clock = "user"

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self.at_end = False
        self.fileno = sock.fileno
        self.send = sock.send
        self.close = sock.close
        self._recv = sock.recv
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    def shake_hands(self, wait: Wait) -> None:
        """Raises OSError if the two sides do not come to terms; ssl.SSLError is one."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                send_all(self, self._outgoing.read(), wait)
                wait(self.fileno(), READ)
                with contextlib.suppress(BlockingIOError):
                    self._take(self._recv(READ_BYTES))
            else:
                return send_all(self, self._outgoing.read(), wait)

    def receive(self) -> tuple[bytes, int]:
        self._take(self._recv(READ_BYTES))
        pieces = []
        while not self.at_end:
            try:
                piece = self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLEOFError:  # closed without saying so within TLS: many servers do
                piece = b""
            pieces.append(piece)
            self.at_end = not piece
        data = b"".join(pieces)
        if not data and not self.at_end:
            raise BlockingIOError("no whole TLS record yet")
        return data, time.time_ns()

    def seal(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._outgoing.read()

    def _take(self, ciphertext: bytes) -> None:
        if ciphertext:
            self._incoming.write(ciphertext)
        else:
            self._incoming.write_eof()
