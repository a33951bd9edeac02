"""Judge the client of served nodes, once in a process.

| contract | what is judged |
|---|---|
| 8 | a wrong address is refused, and so is a peer that answers anything but objects with `ok` |
| 8 | requests and answers arrive whole and in order, in pieces of any size |
| 8 | an ended connection is an error, and a closed client has ended its connection |
| 16 | a request is sent at once, and a wait for an answer ends after `timeout_s` |

The peer is a socket of loopback in the same thread. It sends its bytes before the client reads, so nothing here depends
on the speed of the machine.
"""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tornpage.impl.serving import client as ours
from tornpage.impl.serving.client import Client
from tornpage.properties.contract import GuaranteeBroken

__all__ = ["node_client_holds"]

_DEFAULT_S, _TIMEOUT_S, _SHORT_S = 60.0, 5.0, 0.02
_LONG_BYTES = 300_000
_WRONG_ADDRESSES = ("", "h", "h:", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:65536", ":65536", ":7 ")
_WRONG_ANSWERS: tuple[bytes, ...] = (
    b"no json\n", b"[1]\n", b"{}\n", b'{"ok":1}\n', b'{"ok":null}\n', b'{"ok":"true"}\n', b"HTTP/1.1 400\r\n",
)  # fmt: skip
_ANSWERS: tuple[dict[str, Any], ...] = (
    {"id": 1, "ok": True, "text": "é"}, {"ok": False, "error": "no"}, {"ok": True, "pad": "p" * _LONG_BYTES},
    {"ok": True},
)  # fmt: skip


class _Peer:
    """A listener of loopback, and the connection of one client."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._connection: socket.socket | None = None

    @property
    def connection(self) -> socket.socket:
        """The accepted connection."""
        if self._connection is None:
            self._listener.settimeout(_TIMEOUT_S)
            self._connection, _ = self._listener.accept()
            self._connection.settimeout(_TIMEOUT_S)
        return self._connection

    def requests(self, count: int) -> list[Any]:
        """Return the next requests of the client."""
        data = b""
        while data.count(b"\n") < count:
            piece = self.connection.recv(1 << 16)
            if not piece:
                raise GuaranteeBroken(8, "a client ends its connection before its requests are sent")
            data += piece
        return [json.loads(each) for each in data.split(b"\n")[:-1]]

    def close(self) -> None:
        """End the connection and the listener."""
        if self._connection is not None:
            self._connection.close()
        self._listener.close()


@contextmanager
def _peer() -> Iterator[_Peer]:
    peer = _Peer()
    try:
        yield peer
    finally:
        peer.close()


def node_client_holds() -> None:
    """Judge addresses, requests, answers and ends. Raises GuaranteeBroken."""
    for judge in (_addresses_hold, _requests_hold, _answers_hold, _ends_hold):
        try:
            judge()
        except (OSError, TypeError, ValueError, AttributeError, LookupError) as error:
            raise GuaranteeBroken(8, f"a client raises {type(error).__name__}: {error}") from error


def _is(what: str, found: object, wanted: object, contract: int = 8) -> None:
    if found != wanted:
        raise GuaranteeBroken(contract, f"{what} is another one", str(wanted)[:200], str(found)[:200])


def _fails(call: Callable[[], object], what: str) -> OSError:
    """Contract 8: a call raises OSError. Return it."""
    try:
        call()
    except OSError as error:
        return error
    raise GuaranteeBroken(8, f"{what} is no error", "OSError")


def _addresses_hold() -> None:
    for address in _WRONG_ADDRESSES:
        error = _fails(lambda address=address: Client(address), f"the address {address!r}")  # type: ignore[misc]
        if address not in str(error):
            raise GuaranteeBroken(8, f"the refusal of {address!r} does not name it", found=str(error))
    with suppress(ConnectionRefusedError):  # nothing listens there, and the port is a valid one
        Client("127.0.0.1:65535", timeout_s=_TIMEOUT_S).close()
    for host, options in (("127.0.0.1", {}), ("", {"timeout_s": 7.0}), ("localhost", {"timeout_s": 0.5})):
        with _peer() as peer:
            made: list[socket.socket] = []
            connect = socket.create_connection

            def noted(*arguments: Any, **settings: Any) -> socket.socket:
                made.append(connect(*arguments, **settings))  # noqa: B023 - called in this round only
                return made[-1]  # noqa: B023 - called in this round only

            vars(ours)["socket"] = _Module(noted)
            try:
                client = Client(f"{host}:{peer.port}", **options)
            finally:
                vars(ours)["socket"] = socket
            (link,) = made
            _is("the address of a connection", link.getpeername(), ("127.0.0.1", peer.port))
            _is("the longest wait of a client", link.gettimeout(), options.get("timeout_s", _DEFAULT_S), 16)
            is_prompt = bool(link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            _is("whether a small request is sent at once", is_prompt, True, 16)
            client.close()
            client.close()
            _is("what a peer reads after a close", peer.connection.recv(10), b"")


class _Module:
    """The module `socket` with another way to connect."""

    def __init__(self, connect: Callable[..., socket.socket]) -> None:
        self.create_connection = connect

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)


def _requests_hold() -> None:
    """Contract 8: a request has its fields and its operation.

    Requests are sent in their order.
    """
    requests: Sequence[dict[str, Any]] = ({"op": "put", "body": "é"}, {"op": "x", "id": 7}, {"pad": "p" * _LONG_BYTES})
    with _peer() as peer, Client(f":{peer.port}", timeout_s=_TIMEOUT_S) as client:
        client.send(*requests[:2])
        _is("the requests of a client", peer.requests(2), list(requests[:2]))
        client.send()
        client.send(requests[2])
        _is("a long request", peer.requests(1), [requests[2]])
        peer.connection.sendall(b'{"ok":true,"n":5}\n')
        _is("the answer to a request", client.ask("get", topic="T", max=3), {"ok": True, "n": 5})
        _is("the request of a question", peer.requests(1), [{"op": "get", "topic": "T", "max": 3}])


def _answers_hold() -> None:
    """Contract 8: answers are returned one by one and in order, however they arrive."""
    data = b"".join(json.dumps(each).encode() + b"\n" for each in _ANSWERS)
    for cuts in ((), (1,), (10, 40), (data.index(b"\n") + 1,), (60, len(data) - 1)):
        with _peer() as peer, Client(f":{peer.port}", timeout_s=_TIMEOUT_S) as client:
            begins, ends = (0, *cuts), (*cuts, len(data))
            found: list[dict[str, Any]] = []
            for begin, end in zip(begins, ends, strict=True):
                peer.connection.sendall(data[begin:end])
                while len(found) < data.count(b"\n", 0, end):
                    found.append(client.receive())
            _is("the answers that a client gets", found, list(_ANSWERS))
    for wrong in _WRONG_ANSWERS:
        with _peer() as peer, Client(f":{peer.port}", timeout_s=_TIMEOUT_S) as client:
            peer.connection.sendall(wrong)
            _fails(client.receive, f"the answer {wrong!r}")


def _ends_hold() -> None:
    """Contracts 8 and 16: a peer that ends or says nothing is an error.

    A client in `with` ends its connection.
    """
    with _peer() as peer, Client(f":{peer.port}", timeout_s=_TIMEOUT_S) as client:
        peer.connection.sendall(b'{"ok":true}\n{"ok"')
        peer.connection.close()
        _is("the last answer of a peer", client.receive(), {"ok": True})
        _fails(client.receive, "the end of a connection")
    with _peer() as peer:
        with Client(f":{peer.port}", timeout_s=_SHORT_S) as client:
            _fails(client.receive, "a wait without an answer")
        _is("what a peer reads after the end of a client", peer.connection.recv(10), b"")
    _fails(lambda: client.send({"op": "x"}), "a request of a closed client")
