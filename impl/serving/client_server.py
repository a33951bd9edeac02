"""The connections of clients to a served node: requests in, answers out, in one thread.

A connection ends at a line that is no request; the client gets the reason first. Memory is bounded: a client has at
most one incomplete line, `UNANSWERED_MAX` requests without an answer, and about `UNSENT_BYTES_MAX` of answers that it
has not read. Nothing more is read from it before these numbers fall.
"""

import logging
from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

from tornpage.impl.parts import Parts
from tornpage.impl.replication.link import Link, WaitingNetwork
from tornpage.impl.replication.node_thread import NodeThread, monotonic_ms
from tornpage.impl.replication.tcp import TcpNetwork
from tornpage.impl.serving.fields import Answer, Fields, refusal
from tornpage.impl.serving.lines import BadLine, LineReader, line_of

__all__ = ["CLIENTS_MAX", "UNANSWERED_MAX", "UNSENT_BYTES_MAX", "ClientServer", "Clients", "OperationsFace"]

_LOG = logging.getLogger("tornpage.serving")

CLIENTS_MAX = 64
UNANSWERED_MAX = 1_024
UNSENT_BYTES_MAX = 8 << 20
_READ_BYTES = 64 << 10
_WAIT_MS = 1_000


class OperationsFace(Protocol):
    """What clients can ask for."""

    def answer(self, request: Fields) -> "Answer | Future[Any]":
        """Return the answer to a request, or a future for one that is answered later."""

    def answer_of(self, request: Fields, result: Any) -> Answer:
        """Return the answer to a request whose future is done with a result."""


class Clients:
    """The connections of all clients of a node. The caller steps them.

    `address` is where they connect, with the port that was chosen for port 0. Raises OSError if the network cannot
    listen at the address.
    """

    def __init__(self, address: str, operations: OperationsFace, network: WaitingNetwork) -> None:
        self._network = network
        self._listener = network.listen(address)
        self.address = self._listener.address
        self._operations = operations
        self._clients: list[_Client] = []

    def step(self, now_ms: int) -> int:
        """Accept clients, do what they ask, and send answers; return when the next step is due."""
        while (link := self._listener.accept()) is not None:
            self._accept(link)
        for client in tuple(self._clients):
            try:
                client.step(self._operations)
            except Exception as error:
                _LOG.exception("client_failed peer=%s", client.peer)
                client.end(f"the operation failed: {error}")
            if client.has_ended:
                self._clients.remove(client)
        return now_ms + _WAIT_MS

    def close(self) -> None:
        """End all connections, and stop listening. Idempotent."""
        self._listener.close()
        for client in self._clients:
            client.close()

    def _accept(self, link: Link) -> None:
        if len(self._clients) >= CLIENTS_MAX:
            link.send(line_of(refusal(f"there are {CLIENTS_MAX} clients already")))
            link.close()
        else:
            self._clients.append(_Client(link, self._network))


class ClientServer:
    """Serves the clients at an address of loopback until `close`.

    It has a network and a thread of its own. `address` has the port that the kernel chose for port 0. Raises OSError if
    nothing can listen at the address.
    """

    def __init__(self, address: str, operations: OperationsFace, parts: Parts) -> None:
        network = parts.of(TcpNetwork)()
        self._clients = Clients(address, operations, network)
        self.address = self._clients.address
        self._thread = parts.of(NodeThread)(self._clients.step, network, monotonic_ms, name="tornpage-clients")

    def close(self) -> None:
        """End all connections. Requests that wait for an answer get none. Idempotent."""
        self._thread.stop()
        self._clients.close()


class _Client:
    """One connection."""

    def __init__(self, link: Link, network: WaitingNetwork) -> None:
        self.peer = link.peer
        self.has_ended = False
        self._link = link
        self._network = network
        self._reader = LineReader()
        self._requests: deque[Answer] = deque()
        self._done: deque[tuple[Answer, Any]] = deque()
        self._unanswered = 0
        self._unsent = bytearray()
        self._is_last = False

    def step(self, operations: OperationsFace) -> None:
        """Read requests, do them, write answers."""
        self._write(operations)
        if not self._is_last and len(self._unsent) < UNSENT_BYTES_MAX:
            self._read()
            self._operate(operations)
        self._write(operations)
        if self._is_last and not self._unsent:
            self.close()

    def end(self, reason: str) -> None:
        """Refuse further requests with a reason, and end the connection once the reason is sent."""
        self._unsent += line_of(refusal(reason))
        self._is_last = True

    def close(self) -> None:
        """End the connection."""
        self.has_ended = True
        self._link.close()

    def _read(self) -> None:
        if self._requests:
            return  # the limits do not let them be done yet
        data = self._link.receive(_READ_BYTES)
        if data is None:
            self.close()
            return
        try:
            self._requests.extend(self._reader.feed(data))
        except BadLine as error:
            self.end(str(error))

    def _operate(self, operations: OperationsFace) -> None:
        while self._requests and self._unanswered < UNANSWERED_MAX and len(self._unsent) < UNSENT_BYTES_MAX:
            request = self._requests.popleft()
            answer = operations.answer(request)
            if isinstance(answer, Future):
                self._unanswered += 1
                answer.add_done_callback(partial(self._note_done, request))
            else:
                self._answer(request, answer)

    def _note_done(self, request: Answer, done: "Future[Any]") -> None:
        """Note a request that can be answered now; any thread may call it."""
        self._done.append((request, done.result()))
        self._network.wake()

    def _answer(self, request: Answer, answer: Answer) -> None:
        self._unsent += line_of({"id": request.get("id"), **answer})

    def _write(self, operations: OperationsFace) -> None:
        while self._done:
            self._unanswered -= 1
            request, result = self._done.popleft()
            self._answer(request, operations.answer_of(request, result))
        while self._unsent and (count := self._link.send(bytes(self._unsent[:_READ_BYTES]))):
            del self._unsent[:count]
