"""From a URL's host and port to an open channel."""

from __future__ import annotations

import os
import socket
import ssl
from typing import Any

import gevent.monkey
import gevent.socket

from harness.client.channel import WRITE, Channel, PlainChannel, Wait
from harness.client.tls import TlsChannel

# Under Locust `socket.socket` is gevent's, whose reads switch greenlets, which a callback of the event loop must not.
_Socket: type[socket.socket] = gevent.monkey.get_original("socket", "socket")


def open_channel(host: str, port: int, tls: ssl.SSLContext | None, wait: Wait) -> Channel:
    """Resolve the name, connect to its first address that lets us, and under TLS shake hands.

    Raises OSError, with a message for people, if none of that works.
    """
    try:
        addresses = gevent.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OSError(f"cannot resolve {host}: {_reason(error)}") from error
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in addresses:
        sock = _Socket(family, kind, protocol)
        try:
            return _open(sock, address, host, tls, wait)
        except OSError as error:
            sock.close()
            failure = OSError(f"cannot connect to {host}:{port}: {_reason(error)}")
            failure.__cause__ = error
        except BaseException:
            sock.close()
            raise
    raise failure


def _open(sock: socket.socket, address: Any, host: str, tls: ssl.SSLContext | None, wait: Wait) -> Channel:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        sock.connect(address)
    except BlockingIOError:
        wait(sock.fileno(), WRITE)
        failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed)) from None
    if tls is None:
        return PlainChannel(sock)
    channel = TlsChannel(sock, tls, host)
    channel.shake_hands(wait)
    return channel


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
