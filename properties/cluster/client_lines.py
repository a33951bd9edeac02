"""Judge the connections of clients of a node, once in a process (contracts 8 and 16).

Clients send drawn requests in drawn pieces over links in memory. Operations answer at once or later. What a client gets
is compared with what the operations have answered:

(a) A request is done once, in the order in which it was sent, and its answer has its `id`.
(b) Answers that need no waiting keep the order of their requests. The other ones have the order in which they became
    known.
(c) A step that has read a request sends its answer, and the answers that became known before it.
(d) A line that is no request, or a request that fails, gets a reason and ends its connection. No request is done after
    it. Other clients are not disturbed.
(e) A client has at most 1,024 requests without an answer, and about 8 MiB of answers that it has not read. A node has
    at most 64 clients.
"""

import errno
import json
import logging
import random
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from tornpage.impl.serving.client_server import Clients
from tornpage.properties.contract import GuaranteeBroken

__all__ = ["ClientLink", "ClientNetwork", "clients_hold"]

_PROGRAMS, _EVENTS = 6, 60
_CLIENTS_MAX, _UNANSWERED_MAX, _UNSENT_BYTES_MAX, _READ_BYTES = 64, 1_024, 8 << 20, 64 << 10
_DUE_MS = 1_000
_BAD_LINES = (b"no json\n", b"[1]\n", b'"x"\n', b"\xff\n")


class ClientLink:
    """One end of a link of a client.

    `room` is how many bytes it still accepts, None without a limit.
    """

    def __init__(self, number: int) -> None:
        self.peer = f"client-{number}"
        self.inbox, self.outbox = bytearray(), bytearray()
        self.room: int | None = None
        self.has_left = self.is_closed = False
        self.asked_bytes = 0

    def send(self, data: bytes) -> int:
        """Accept bytes while there is room."""
        count = 0 if self.is_closed else len(data) if self.room is None else min(self.room, len(data))
        self.outbox += data[:count]
        if self.room is not None:
            self.room -= count
        return count

    def receive(self, size_bytes_max: int) -> bytes | None:
        """Return what the client has sent, None after its end."""
        self.asked_bytes = max(self.asked_bytes, size_bytes_max)
        found = bytes(self.inbox[:size_bytes_max])
        del self.inbox[:size_bytes_max]
        return None if not found and (self.has_left or self.is_closed) else found

    def close(self) -> None:
        """End the link."""
        self.is_closed = True


class ClientNetwork:
    """A network with one listener, whose address ends with a mark.

    `wakes` counts the wake-ups.
    """

    def __init__(self, mark: str = "!", attempts: list[str] | None = None, used: Collection[str] = frozenset()) -> None:
        self.address = ""
        self._mark = mark
        self._attempts = [] if attempts is None else attempts
        self._used = used
        self.backlog: deque[ClientLink] = deque()
        self.is_listening = False
        self.wakes = 0

    def listen(self, address: str) -> "ClientNetwork":
        """Listen at an address, unless another process uses it."""
        if address in self._used:
            raise OSError(errno.EADDRINUSE, "the address is in use", address)
        self.address, self.is_listening = address + self._mark, True
        return self

    def accept(self) -> ClientLink | None:
        """Return the next client."""
        return self.backlog.popleft() if self.backlog else None

    def close(self) -> None:
        """Stop listening."""
        self.is_listening = False

    def connect(self, address: str) -> None:
        """Note an attempt to connect; nothing answers."""
        self._attempts.append(address)

    def wait(self, timeout_ms: int) -> None:
        """Wait for nothing."""

    def wake(self) -> None:
        """Count a wake-up."""
        self.wakes += 1


class _Operations:
    """Answers requests at once, later, or with an exception, as the request says."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.waiting: dict[int, Future[Any]] = {}

    def answer(self, request: Mapping[str, Any]) -> "dict[str, Any] | Future[Any]":
        """Do a request."""
        number = request["number"]
        self.done.append(number)
        if request["op"] == "fail":
            raise ValueError(f"failure {number}")
        if request["op"] == "later":
            self.waiting[number] = Future()
            return self.waiting[number]
        if request["op"] == "known":
            known: Future[Any] = Future()
            known.set_result(number)
            return known
        return {"ok": True, "echo": number, "pad": "p" * request.get("pad", 0)}

    def answer_of(self, request: Mapping[str, Any], result: int) -> dict[str, Any]:
        """Return the answer to a request that has waited."""
        return {"ok": True, "later": result, "of": request["number"]}


@dataclass(slots=True)
class _Client:
    """A client and what it has to get.

    `sent` are its requests that the node has not read whole, `at_once` and `later` the answers that are due, and `last`
    a part of the sentence with which its connection ends.
    """

    link: ClientLink
    waits: bytearray = field(default_factory=bytearray)
    at_once: list[dict[str, Any]] = field(default_factory=list)
    later: list[dict[str, Any]] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    last: str = ""


def clients_hold() -> None:
    """Judge drawn programs and every limit. Raises GuaranteeBroken."""
    log = logging.getLogger("tornpage.serving")
    was_disabled, log.disabled = log.disabled, True  # the failed operations are meant
    try:
        for seed in range(_PROGRAMS):
            _Program(random.Random(f"clients {seed}")).run()
        _unanswered_are_bounded()
        _unsent_are_bounded()
        _clients_are_bounded()
    finally:
        log.disabled = was_disabled


class _Program:
    """One drawn program of some clients."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._network = ClientNetwork()
        self._operations = _Operations()
        self._server = Clients("here", self._operations, self._network)
        self._clients: list[_Client] = []
        self._number = 0
        self._owner: dict[int, tuple[_Client, dict[str, Any]]] = {}
        if self._server.address != "here!" or not self._network.is_listening:
            raise GuaranteeBroken(8, "clients receive another address", "here!", self._server.address)

    def run(self) -> None:
        """Draw events and steps, then let all rest."""
        events: tuple[Callable[[], None], ...] = (
            self._connect, self._send, self._send, self._send, self._arrive, self._arrive, self._settle, self._settle,
            self._step, self._step, self._leave, self._narrow,
        )  # fmt: skip
        self._connect()
        for _ in range(_EVENTS):
            self._rng.choice(events)()
        for client in self._clients:
            client.link.inbox += client.waits
            client.waits.clear()
            client.link.room = None
        self._step()
        for number in tuple(self._operations.waiting):
            self._settle_one(number)
        self._step()
        self._step()
        for client in self._clients:
            self._judge(client, is_whole=True)
        self._close()

    def _connect(self) -> None:
        if len(self._clients) < 5:
            self._clients.append(_Client(ClientLink(len(self._clients))))
            self._network.backlog.append(self._clients[-1].link)

    def _open(self) -> list[_Client]:
        return [each for each in self._clients if not each.link.has_left and not each.last]

    def _send(self) -> None:
        """Let a client send a request, or rarely a line that is none."""
        if not self._open():
            return
        client = self._rng.choice(self._open())
        if self._rng.random() < 0.04:
            client.waits += self._rng.choice(_BAD_LINES)
            client.last = "a line is no JSON"
            return
        self._number += 1
        op = self._rng.choice(("now", "now", "later", "later", "known", "fail") if self._number % 9 == 0 else
                              ("now", "now", "later", "later", "known"))  # fmt: skip
        request = {"op": op, "number": self._number}
        if self._rng.random() < 0.8:
            request["id"] = self._rng.choice((self._number, f"i{self._number}", None, 0))
        self._owner[self._number] = client, request
        client.waits += json.dumps(request).encode() + b"\n"
        client.sent.append(request)
        if op == "fail":
            client.last = f"the operation failed: failure {self._number}"

    def _arrive(self) -> None:
        """Let a part of what a client has sent arrive."""
        waiting = [each for each in self._clients if each.waits]
        if waiting:
            client = self._rng.choice(waiting)
            count = self._rng.randint(1, len(client.waits))
            client.link.inbox += client.waits[:count]
            del client.waits[:count]

    def _settle(self) -> None:
        if self._operations.waiting:
            self._settle_one(self._rng.choice(tuple(self._operations.waiting)))

    def _settle_one(self, number: int) -> None:
        """Let the answer to a waiting request become known: its thread is woken."""
        wakes, (client, request) = self._network.wakes, self._owner[number]
        self._operations.waiting.pop(number).set_result(-number)
        if self._network.wakes == wakes:
            raise GuaranteeBroken(16, "the thread of clients is not woken when an answer becomes known")
        client.later.append({"id": request.get("id"), "ok": True, "later": -number, "of": number})

    def _leave(self) -> None:
        if self._rng.random() < 0.15 and self._open():
            client = self._rng.choice(self._open())
            client.link.has_left = True
            client.waits.clear()

    def _narrow(self) -> None:
        if self._clients:
            self._rng.choice(self._clients).link.room = self._rng.choice((0, 1, 30, None))

    def _step(self) -> None:
        done = len(self._operations.done)
        due = self._server.step(7)
        if due != 7 + _DUE_MS:
            raise GuaranteeBroken(16, f"a step of clients is due after {due - 7} ms", str(_DUE_MS))
        for number in self._operations.done[done:]:
            client, request = self._owner[number]
            if not client.sent or client.sent.pop(0) is not request:
                raise GuaranteeBroken(8, f"request {number} is done out of its order")
            if request["op"] == "now":
                client.at_once.append({"id": request.get("id"), "ok": True, "echo": number, "pad": ""})
            elif request["op"] == "known":
                client.later.append({"id": request.get("id"), "ok": True, "later": number, "of": number})
        for client in self._clients:
            self._judge(client)

    def _judge(self, client: _Client, *, is_whole: bool = False) -> None:
        """Compare what a client has got with what it has to get."""
        link = client.link
        if link.asked_bytes > _READ_BYTES:
            raise GuaranteeBroken(8, f"{link.asked_bytes} bytes are read from a client at once", str(_READ_BYTES))
        found = _objects(bytes(link.outbox))
        has_ended = link.is_closed
        last = [each for each in found if each.get("ok") is False]
        for sort, wanted in (("echo", client.at_once), ("later", client.later)):
            answers = [each for each in found if sort in each]
            is_enough = len(answers) == len(wanted) or link.room is not None or client.last or link.has_left
            if answers != wanted[: len(answers)] or not is_enough:
                raise GuaranteeBroken(8, "a client gets other answers", str(wanted)[-200:], str(answers)[-200:])
        later = found[found.index(last[0]) + 1 :] if last else []
        if last and (len(last) > 1 or any("echo" in each for each in later) or client.last not in last[0]["error"]):
            raise GuaranteeBroken(8, "a connection ends with another reason", client.last, str(found[-2:]))
        if last and not client.last:
            raise GuaranteeBroken(8, "a request is refused", found=str(last))
        if has_ended and not link.has_left and not last:
            raise GuaranteeBroken(8, "a connection ends without a reason")
        if is_whole and (link.has_left or client.last) and not has_ended:
            raise GuaranteeBroken(8, "a connection is kept after its end", client.last or "the client has left")
        if is_whole and client.last and not link.has_left and not last:
            raise GuaranteeBroken(8, "a client is not told why its connection ends", client.last)
        if is_whole and not client.last and not link.has_left and (has_ended or client.sent):
            raise GuaranteeBroken(8, "the connection of a client is not served", found=str(client.sent))

    def _close(self) -> None:
        for _ in range(2):
            self._server.close()
            if self._network.is_listening or not all(each.link.is_closed for each in self._clients):
                raise GuaranteeBroken(8, "a closed node keeps a connection of a client")


def _objects(data: bytes) -> list[dict[str, Any]]:
    """Return the whole lines of an answer stream as objects."""
    return [json.loads(each) for each in data.split(b"\n")[:-1]]


def _alone() -> tuple[ClientLink, _Operations, Clients, ClientNetwork]:
    network, operations, link = ClientNetwork(), _Operations(), ClientLink(0)
    server = Clients("here", operations, network)
    network.backlog.append(link)
    return link, operations, server, network


def _lines(op: str, first: int, count: int, **more: int) -> bytes:
    return b"".join(
        json.dumps({"op": op, "number": first + at, "id": first + at, **more}).encode() + b"\n" for at in range(count)
    )


def _is(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(8, f"{what} is another one", str(wanted)[:200], str(found)[:200])


def _unanswered_are_bounded() -> None:
    """Contract 8: more requests than the limit wait until some are answered."""
    link, operations, server, _ = _alone()
    link.inbox += _lines("later", 0, _UNANSWERED_MAX + 3)
    for _ in range(3):
        server.step(0)
    _is("the number of requests without an answer", len(operations.done), _UNANSWERED_MAX)
    link.inbox += _lines("now", 5_000, 2)
    for at in range(3):
        operations.waiting[at].set_result(at)
        server.step(0)
        _is("the number of requests after an answer", len(operations.done), _UNANSWERED_MAX + 1 + at)
    server.step(0)
    for at in range(3, 9):
        operations.waiting[at].set_result(at)
    for _ in range(3):
        server.step(0)
    _is("the number of requests of a client", len(operations.done), _UNANSWERED_MAX + 5)
    _is("the answers of a client", [each["id"] for each in _objects(bytes(link.outbox))], [*range(9), 5_000, 5_001])


def _unsent_are_bounded() -> None:
    """Contract 8: a client that reads nothing has few answers waiting.

    It gets all once it reads.
    """
    link, operations, server, _ = _alone()
    link.room = 0
    link.inbox += _lines("now", 0, 20, pad=1 << 20)
    for _ in range(3):
        server.step(0)
    _is("the number of large answers that wait", len(operations.done), _UNSENT_BYTES_MAX >> 20)
    link.inbox += b" " * 10
    server.step(0)
    _is("what is read from a client with many unread answers", len(link.inbox), 10)
    link.inbox.clear()
    link.room = 3 << 20
    server.step(0)
    _is("what a client reads of large answers", len(link.outbox), 3 << 20)
    link.room = None
    for _ in range(4):
        server.step(0)
    _is("the large answers", [each["echo"] for each in _objects(bytes(link.outbox))], list(range(20)))
    _is("whether all answers are sent", (link.is_closed, operations.done), (False, list(range(20))))


def _clients_are_bounded() -> None:
    """Contract 8: a client above the limit is refused with a reason.

    A client that leaves makes room.
    """
    network, operations = ClientNetwork(), _Operations()
    server = Clients("here", operations, network)
    links = [ClientLink(number) for number in range(_CLIENTS_MAX + 2)]
    network.backlog.extend(links)
    server.step(0)
    refused = [number for number, each in enumerate(links) if each.is_closed]
    _is("the clients above the limit", refused, [_CLIENTS_MAX, _CLIENTS_MAX + 1])
    for number in refused:
        answers = _objects(bytes(links[number].outbox))
        told = [(each.get("ok"), bool(each.get("error"))) for each in answers]
        _is("the refusal of a client", told, [(False, True)])
    links[5].has_left = True
    server.step(0)
    late = ClientLink(200)
    network.backlog.append(late)
    late.inbox += _lines("now", 1, 1)
    server.step(0)
    _is("a client that came after another has left", (late.is_closed, len(_objects(bytes(late.outbox)))), (False, 1))
