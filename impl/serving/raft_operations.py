"""What clients can ask of a member of a Raft group, as JSON objects.

| op | fields | answer |
|---|---|---|
| append | body or body64 | status, index and term of the committed entry |
| read | from, max | end, entries: the committed ones at the time of the request, from a leader |
| entries | from, max | end, entries: the ones that this member has and that are committed, maybe not the newest |
| status | | the state of the member |
| transfer | member | status: OK if the leader has asked the member to lead |

`body` is text, and `body64` bytes in base64. An entry has `index`, `term` and a body; the one with which a leader
begins its term has an empty body. `ok` is false for each status but OK. An answer with NOT_LEADER has `leader`, the
number of the leader, and `leader_clients`, the address at which it serves clients, if they are known. After UNKNOWN an
entry may be committed or not. After the other statuses it never will be.
"""

from collections.abc import Callable
from concurrent.futures import Future

from tornpage.impl.errors import StoreError
from tornpage.impl.raft.answers import Answered, RaftStatus
from tornpage.impl.raft.entries import RaftEntries
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.serving.fields import Answer, BadRequest, Fields, body_of, bytes_document, failed, number_of, refusal

__all__ = ["RaftOperations"]

_ENTRIES_MAX = 1_000
_ENTRIES_BYTES_MAX = 4 << 20
"""Bytes of bodies in one answer, about."""


class RaftOperations:
    """The operations of one member with entries.

    `body_at` returns the body of the entry at a place. `begin` gives the operations their node. Until then, clients
    are refused.
    """

    def __init__(self, entries: RaftEntries, body_at: Callable[[int], bytes]) -> None:
        self.application = entries
        self._member = entries.member
        self._body_at = body_at
        self._node: RaftNode | None = None

    def begin(self, node: RaftNode) -> None:
        """Serve clients from now on."""
        self._node = node

    def answer(self, request: Fields) -> "Answer | Future[Answered]":
        """Return the answer to a request, or a future for one that waits for the group."""
        if self._node is None:
            return refusal("this member is starting")
        try:
            match request.get("op"):
                case "append":
                    return self._append(request)
                case "read":
                    _range(request)
                    return self.application.read()
                case "transfer":
                    return self._node.transfer(number_of(request, "member", high=self._member.members - 1))
                case "entries":
                    return {"ok": True, **self._entries(request, self._member.visible)}
                case "status":
                    return {"ok": True, **self.status()}
                case other:
                    return refusal(
                        f"no operation is named {other!r}; the names are append, read, entries, status, transfer"
                    )
        except (BadRequest, StoreError) as error:
            return refusal(str(error))
        except OSError as error:
            return failed(error)

    def answer_of(self, request: Fields, result: Answered) -> Answer:
        """Return the answer to a request that has waited for the group."""
        answer: Answer = {"ok": result.status is RaftStatus.OK, "status": result.status}
        if result.status is RaftStatus.NOT_LEADER:
            clients = "" if self._node is None else self._node.leader_clients
            answer |= {"leader": self._member.leader, "leader_clients": clients}
        elif result.status is RaftStatus.OK and request.get("op") == "append":
            answer |= {"index": result.place, "term": result.term}
        elif result.status is RaftStatus.OK and request.get("op") == "read":
            try:
                answer |= self._entries(request, result.place)
            except (OSError, StoreError) as error:
                return refusal(str(error))
        return answer

    def status(self) -> Answer:
        """Return the state of the member."""
        return {} if self._node is None else {**self._node.status(), "waiting": self.application.waiting}

    def _append(self, request: Fields) -> "Future[Answered]":
        body = body_of(request)
        if not body:
            raise BadRequest("`body` is empty; an entry of a client has at least one byte")
        return self.application.append(body)

    def _entries(self, request: Fields, end: int) -> Answer:
        first, count = _range(request)
        entries: list[Answer] = []
        size_bytes = 0
        for place in range(first, min(first + count, end)):
            body = self._body_at(place)
            entries.append({"index": place, "term": self._member.log.term_at(place), **bytes_document(body)})
            size_bytes += len(body)
            if size_bytes > _ENTRIES_BYTES_MAX:
                break
        return {"end": end, "entries": entries}


def _range(request: Fields) -> tuple[int, int]:
    """Return the first place and the number of the asked entries. Raises BadRequest."""
    return number_of(request, "from", 0), number_of(request, "max", 32, 1, _ENTRIES_MAX)
