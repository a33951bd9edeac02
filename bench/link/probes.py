"""Measure a TCP connection on loopback: latency and bandwidth.

The far end is a process of its own, which returns what it receives.
"""

import multiprocessing
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns

import numpy as np

from tornpage.sim.distributions import Int64s

__all__ = ["bytes_per_s", "echo", "free_address", "latencies_ns"]

MESSAGE_BYTES = 64
BULK_BYTES = 16 << 20
_BULK, _DONE = b"b", b"d"
_TIMEOUT_S = 20.0


def _echo(port: int) -> None:
    """Return each message; after the byte _BULK count bytes instead and confirm them."""
    with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := peer.recv(MESSAGE_BYTES):
            if data[:1] != _BULK:
                peer.sendall(data)
                continue
            left = BULK_BYTES - len(data) + 1
            while left > 0:
                left -= len(peer.recv(1 << 18))
            peer.sendall(_DONE)


def free_address() -> str:
    """Return an address on loopback at which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def echo() -> Iterator[socket.socket]:
    """Yield a connection to a process that returns what it receives."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(_TIMEOUT_S)
        process = multiprocessing.get_context("spawn").Process(target=_echo, args=(server.getsockname()[1],))
        process.start()
        try:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(_TIMEOUT_S)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                yield connection
        finally:
            process.join(_TIMEOUT_S)
            if process.is_alive():
                process.terminate()


def latencies_ns(connection: socket.socket, count: int) -> Int64s:
    """Return half of the round-trip times of small messages."""
    message, found = b"m" * MESSAGE_BYTES, np.zeros(count, np.int64)
    for number in range(count):
        begun_ns = perf_counter_ns()
        connection.sendall(message)
        left = MESSAGE_BYTES
        while left:
            left -= len(connection.recv(left))
        found[number] = (perf_counter_ns() - begun_ns) // 2
    return found


def bytes_per_s(connection: socket.socket) -> float:
    """Return the bandwidth of one large transfer."""
    begun_ns = perf_counter_ns()
    sender = threading.Thread(target=connection.sendall, args=(_BULK + bytes(BULK_BYTES),))
    sender.start()
    assert connection.recv(1) == _DONE
    sender.join()
    return BULK_BYTES / (perf_counter_ns() - begun_ns) * 1e9
