"""A client of a served node, for programs and for the command line."""

import socket
from typing import Any

from tornpage.impl.serving.lines import BadLine, LineReader, line_of

__all__ = ["Client"]

_READ_BYTES = 64 << 10


class Client:
    """One blocking connection. Use it in a `with` statement or call `close`.

    Raises OSError if nothing answers at the address. `timeout_s` is the longest wait for an answer.
    """

    def __init__(self, address: str, *, timeout_s: float = 60.0) -> None:
        host, _, port = address.rpartition(":")
        if not port.isdecimal() or int(port) > 65_535:
            raise OSError(f"{address!r} is no address; give HOST:PORT")
        self._socket = socket.create_connection((host or "127.0.0.1", int(port)), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = LineReader()
        self._answers: list[dict[str, Any]] = []

    def ask(self, op: str, /, **fields: Any) -> dict[str, Any]:
        """Send a request and return its answer. Raises OSError, as for a lost connection."""
        self.send({**fields, "op": op})
        return self.receive()

    def send(self, *requests: dict[str, Any]) -> None:
        """Send requests without waiting for their answers. Raises OSError."""
        self._socket.sendall(b"".join(map(line_of, requests)))

    def receive(self) -> dict[str, Any]:
        """Return the next answer, whose `ok` is a boolean. Raises OSError."""
        while not self._answers:
            data = self._socket.recv(_READ_BYTES)
            if not data:
                raise ConnectionResetError("the node has ended the connection")
            try:
                self._answers.extend(self._reader.feed(data))
            except BadLine as error:
                raise OSError(f"the peer is no node of tornpage: {error}") from error
        answer = self._answers.pop(0)
        if not isinstance(answer.get("ok"), bool):
            raise OSError("the peer is no node of tornpage: an answer has no `ok`")
        return answer

    def close(self) -> None:
        """End the connection. Idempotent."""
        self._socket.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
