"""Links over TCP: non-blocking sockets.

An address is `host:port`; without a host name it is loopback. Only `TcpNetwork.wait` waits. A connection that is not
yet established accepts no bytes, and one that fails has ended.
"""

import contextlib
import errno
import os
import select
import socket
import weakref

__all__ = ["TcpLink", "TcpListener", "TcpNetwork", "host_and_port"]

_LOOPBACK = "127.0.0.1"
_BACKLOG = 128
_NOT_YET = frozenset({errno.EAGAIN, errno.EINPROGRESS, errno.ENOTCONN, errno.EALREADY})


class _Poller:
    """What a thread waits for.

    After a `wait` only the sockets that were ready then are read, since each system call lets other threads of Python
    run before it returns. Without any `wait` all are.
    """

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self.ready: set[int] | None = None

    def may_read(self, number: int) -> bool:
        """Whether a socket may have something to read."""
        return self.ready is None or number in self.ready


class TcpLink:
    """One end of a TCP connection. `poller` learns whether the link waits for room to send."""

    def __init__(self, connection: socket.socket, peer: str, poller: _Poller) -> None:
        self._socket = connection
        self._peer = peer
        self._poller = poller
        self._number = connection.fileno()
        self._has_ended = False
        self._is_full = False
        poller.epoll.register(connection, select.EPOLLIN)

    @property
    def peer(self) -> str:
        """The address of the other end."""
        return self._peer

    def send(self, data: bytes | memoryview) -> int:
        """Hand bytes to the kernel; return how many it took."""
        if self._has_ended:
            return 0
        try:
            count = self._socket.send(data)
        except OSError as error:
            self._note(error)
            count = 0
        self._await_room(count < len(data) and not self._has_ended)
        return count

    def _await_room(self, is_full: bool) -> None:
        if is_full is not self._is_full:
            self._is_full = is_full
            self._poller.epoll.modify(self._socket, select.EPOLLIN | (select.EPOLLOUT if is_full else 0))

    def receive(self, size_bytes_max: int) -> bytes | None:
        """Return what the kernel has received, b"" without any, None after the end."""
        if self._has_ended:
            return None
        if not self._poller.may_read(self._number):
            return b""
        try:
            data = self._socket.recv(size_bytes_max)
        except OSError as error:
            self._note(error)
            return None if self._has_ended else b""
        self._has_ended = not data
        return data or None

    def _note(self, error: OSError) -> None:
        """End the link for every error that does not mean "not yet"."""
        self._has_ended = self._has_ended or error.errno not in _NOT_YET

    def close(self) -> None:
        """Close the socket."""
        self._has_ended = True
        self._socket.close()


class TcpListener:
    """A listening socket. `address` has the port that the kernel chose for port 0."""

    def __init__(self, address: str, poller: _Poller) -> None:
        self._poller = poller
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._number = self._socket.fileno()
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(host_and_port(address))
            self._socket.listen(_BACKLOG)
            self._socket.setblocking(False)
            poller.epoll.register(self._socket, select.EPOLLIN)
        except OSError as error:
            self._socket.close()
            raise OSError(error.errno, error.strerror, address) from error
        host, port = self._socket.getsockname()
        self.address = f"{host}:{port}"

    def accept(self) -> TcpLink | None:
        """Return the next connection, or None."""
        if not self._poller.may_read(self._number):
            return None
        try:
            connection, (host, port) = self._socket.accept()
        except OSError:
            return None
        return TcpLink(_prepared(connection), f"{host}:{port}", self._poller)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class TcpNetwork:
    """The network of a node.

    One thread at a time may call `wait`; every thread may call `wake`.
    """

    def __init__(self) -> None:
        self._poller = _Poller()
        self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poller.epoll.register(self._wakes, select.EPOLLIN)
        self._may_sleep = True
        weakref.finalize(self, os.close, self._wakes)

    def listen(self, address: str) -> TcpListener:
        """Listen at an address. Raises OSError."""
        return TcpListener(address, self._poller)

    def connect(self, address: str) -> TcpLink | None:
        """Begin a connection; return None if it fails at once, also without a free descriptor."""
        with contextlib.suppress(OSError), contextlib.ExitStack() as closing:
            connection = closing.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            if _prepared(connection).connect_ex(host_and_port(address)) in (0, errno.EINPROGRESS):
                link = TcpLink(connection, address, self._poller)
                closing.pop_all()
                return link
        return None

    def wait(self, timeout_ms: int) -> None:
        """Wait until a link or listener is ready, `wake` is called, or the time is over."""
        ready = self._poller.ready = {number for number, _ in self._poller.epoll.poll(timeout_ms / 1_000)}
        if self._wakes in ready:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._wakes)
        self._may_sleep = True  # a `wake` from here on ends the next wait

    def wake(self) -> None:
        """End the present or the next wait."""
        if self._may_sleep:
            self._may_sleep = False
            with contextlib.suppress(BlockingIOError):
                os.eventfd_write(self._wakes, 1)


def _prepared(connection: socket.socket) -> socket.socket:
    """Return a socket that does not block and does not wait to fill packets."""
    connection.setblocking(False)
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def host_and_port(address: str) -> tuple[str, int]:
    """Return host and port of an address.

    Raises OSError if it has no port from 0 to 65535, or if it is an IPv6 address: links are IPv4.
    """
    host, _, port = address.rpartition(":")
    if ":" in host:
        raise OSError(errno.EINVAL, "links are IPv4: use an IPv4 address or a name, with a port", address)
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65_535):
        raise OSError(errno.EINVAL, "the address has no port from 0 to 65535", address)
    return host or _LOOPBACK, int(port)
