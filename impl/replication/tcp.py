"""Links over TCP: non-blocking sockets.

An address is `host:port`; without a host name it is loopback. Nothing here waits: a connection that is not yet
established accepts no bytes, and one that fails has ended.
"""

import contextlib
import errno
import socket

__all__ = ["TcpLink", "TcpListener", "TcpNetwork"]

_LOOPBACK = "127.0.0.1"
_BACKLOG = 128
_NOT_YET = frozenset({errno.EAGAIN, errno.EINPROGRESS, errno.ENOTCONN, errno.EALREADY})


class TcpLink:
    """One end of a TCP connection."""

    def __init__(self, connection: socket.socket, peer: str) -> None:
        self._socket = connection
        self._peer = peer
        self._has_ended = False

    @property
    def peer(self) -> str:
        """The address of the other end."""
        return self._peer

    def send(self, data: bytes) -> int:
        """Hand bytes to the kernel; return how many it took."""
        if self._has_ended:
            return 0
        try:
            return self._socket.send(data)
        except OSError as error:
            self._note(error)
            return 0

    def receive(self, size_bytes_max: int) -> bytes | None:
        """Return what the kernel has received, b"" without any, None after the end."""
        if self._has_ended:
            return None
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

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(_host_and_port(address))
            self._socket.listen(_BACKLOG)
            self._socket.setblocking(False)
        except BaseException:
            self._socket.close()
            raise
        host, port = self._socket.getsockname()
        self.address = f"{host}:{port}"

    def accept(self) -> TcpLink | None:
        """Return the next connection, or None."""
        try:
            connection, (host, port) = self._socket.accept()
        except OSError:
            return None
        return TcpLink(_prepared(connection), f"{host}:{port}")

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class TcpNetwork:
    """The network of a process."""

    def listen(self, address: str) -> TcpListener:
        """Listen at an address. Raises OSError."""
        return TcpListener(address)

    def connect(self, address: str) -> TcpLink | None:
        """Begin a connection; return None if it fails at once."""
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            connection = _prepared(connection)
            code = connection.connect_ex(_host_and_port(address))
        except OSError:
            code = errno.EINVAL
        if code in (0, errno.EINPROGRESS):
            return TcpLink(connection, address)
        connection.close()
        return None


def _prepared(connection: socket.socket) -> socket.socket:
    """Return a socket that does not block and does not wait to fill packets."""
    connection.setblocking(False)
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _host_and_port(address: str) -> tuple[str, int]:
    """Return host and port of an address. Raises OSError if it has none."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise OSError(errno.EINVAL, "the address has no port", address)
    return host or _LOOPBACK, int(port)
