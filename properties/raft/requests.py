"""Ask a member in the protocol of clients, and judge whole answers (contracts 8 and 17).

The requests of a run go through the operations of a served member, and so do their answers. What an answer has to be
follows from the result of the request, the committed entries and the state of the member. A closed member answers
every request at once.
"""

import base64
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.raft.answers import Answered, RaftStatus
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.impl.serving.raft_operations import RaftOperations
from tornpage.impl.serving.raft_store_operations import RaftStoreOperations
from tornpage.model.raft.state import Entry, Member
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["Requests", "Shown"]

_WRONG_EVERYWHERE: tuple[dict[str, Any], ...] = (
    {"op": "no such name"}, {"op": 7}, {}, {"op": "transfer"}, {"op": "transfer", "member": -1},
    {"op": "transfer", "member": "0"}, {"op": "transfer", "member": True},
)  # fmt: skip
_WRONG_ENTRIES: tuple[dict[str, Any], ...] = (
    {"op": "append"}, {"op": "append", "body": ""}, {"op": "append", "body64": ""}, {"op": "append", "body64": "*"},
    {"op": "append", "body": 7}, {"op": "read", "from": -1}, {"op": "read", "max": 0}, {"op": "read", "max": 1_001},
    {"op": "read", "from": "0"}, {"op": "entries", "max": 0}, {"op": "entries", "max": 1_001},
    {"op": "entries", "from": -1}, {"op": "entries", "from": None}, {"op": "put", "topic": "T", "body": "x"},
)  # fmt: skip
_WRONG_MESSAGES: tuple[dict[str, Any], ...] = (
    {"op": "append", "body": "x"}, {"op": "put", "body": "x"}, {"op": "put", "topic": "T"}, {"op": "get"},
    {"op": "become", "role": "SLAVE", "master": "h:1"}, {"op": "drain"},
)  # fmt: skip
_SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a member has to show now.

    `committed` has the committed entries of the group, `body_of` returns the body of a payload, and `clients_of` the
    address of the clients of a member. `elections` counts the elections that the member began.
    """

    state: Member
    committed: Sequence[Entry]
    body_of: Callable[[int], bytes]
    clients_of: Callable[[int], str]
    peers: Sequence[str]
    elections: int
    directory: str


class Requests:
    """The requests of clients in one life of a member."""

    def __init__(self, application: Any, log: RaftLog, node: RaftNode, *, has_store: bool) -> None:
        self._has_store = has_store
        self._node = node
        self._application = application
        self._operations: Any = (
            RaftStoreOperations(application) if has_store else RaftOperations(application, log.body_at)
        )
        self._waiting: list[tuple[dict[str, Any], Future[Any]]] = []
        self._count = 0
        early = observed("a request", partial(self._operations.answer, {"op": "read"}))
        _require({"op": "read"}, early, isinstance(early, dict) and early.get("ok") is False and early.get("error"))
        if self._operations.status() != {}:
            raise GuaranteeBroken(8, "a member that is starting shows a state")
        self._operations.begin(node)

    # ---- requests ------------------------------------------------------------------------------------------------

    def append(self, body: bytes) -> "Future[Answered]":
        """Ask for an entry."""
        self._count += 1
        with suppress(UnicodeDecodeError):
            if self._count % 2:
                return self._later({"op": "append", "body": body.decode()})
        return self._later({"op": "append", "body64": base64.b64encode(body).decode()})

    def read(self) -> "Future[Answered]":
        """Ask for a read. The asked range differs from read to read."""
        self._count += 1
        request = {"op": "read", "from": self._count % 5, "max": 1 + self._count % 7}
        return self._later(request if self._count % 3 else {"op": "read"})

    def transfer(self, to: int) -> "Future[Answered]":
        """Ask for a transfer of the role."""
        return self._later({"op": "transfer", "member": to})

    def put(self, topic: str, queue_id: int, body: bytes, key: str) -> "Future[PutResult] | None":
        """Put a message. Return None if the member says that it has no majority."""
        request = {
            "op": "put", "topic": topic, "queue": queue_id, "body64": base64.b64encode(body).decode(), "keys": key,
        }  # fmt: skip
        answer = observed("a request", partial(self._operations.answer, request))
        if isinstance(answer, Future):
            self._waiting.append((request, answer))
            return answer
        lacks_majority = self._node.refusal is RaftStatus.NO_MAJORITY
        _require(request, answer, lacks_majority and answer == {"ok": False, "status": "NO_MAJORITY"})
        return None

    def _later(self, request: dict[str, Any]) -> "Future[Any]":
        answer = observed("a request", partial(self._operations.answer, request))
        if not isinstance(answer, Future):
            raise GuaranteeBroken(8, f"the request {request} is refused", "a future", str(answer))
        self._waiting.append((request, answer))
        return answer

    # ---- answers -------------------------------------------------------------------------------------------------

    def judge(self, shown: Shown) -> None:
        """Judge the answers to requests that are done."""
        done = [each for each in self._waiting if each[1].done()]
        self._waiting = [each for each in self._waiting if not each[1].done()]
        for request, future in done:
            result = future.result(0)
            answer = observed("an answer", partial(self._operations.answer_of, request, result))
            if isinstance(result, Answered):
                wanted = _answered(request, result, shown, has_store=self._has_store)
                is_refused = result.status is RaftStatus.NOT_LEADER
            else:
                wanted, is_refused = _put_answer(result), result.status is PutStatus.NOT_LEADER
            _equals(request, answer, {**wanted, **(self._leader(shown, answer) if is_refused else {})})

    @staticmethod
    def _leader(shown: Shown, answer: dict[str, Any]) -> dict[str, Any]:
        """Return what a refusal says of the leader. The address of its clients may be unknown."""
        leader = shown.state.leader
        known = "" if leader is None else shown.clients_of(leader)
        return {"leader": leader, "leader_clients": known if answer.get("leader_clients") else ""}

    def look(self, shown: Shown) -> None:
        """Compare the state that a member shows, and all its committed entries.

        Wrong requests are refused.
        """
        state = shown.state
        status = dict(observed("a request", partial(self._operations.answer, {"op": "status"})))
        rows, findings = status.pop("peers"), status.pop("findings")
        leader = self._leader(shown, status) if state.leader != state_me(status) else {"leader_clients": ""}
        wanted = {
            "ok": True, "members": list(shown.peers), "role": state.role, "term": state.term, "leader": state.leader,
            "leader_clients": leader["leader_clients"], "end": state.end, "durable_end": state.synced,
            "commit_end": state.commit, "visible_end": state.visible, "elections": shown.elections,
            "failure": self._node.failure,
        }  # fmt: skip
        if self._has_store:
            store = self._application.store
            wanted |= {
                "store": shown.directory, "read_only_reason": None, "dispatch_error": None,
                "dispatch_behind_bytes": store.dispatch_behind_bytes,
                "findings_of_store": [f"{each.severity} {each.code}: {each.message}" for each in store.findings],
            }  # fmt: skip
        else:
            wanted["waiting"] = self._application.waiting
        me = status.pop("member")
        _equals({"op": "status"}, status, wanted)
        others = [(number, address) for number, address in enumerate(shown.peers) if number != me]
        found = [(row["member"], row["address"]) for row in rows]
        if found != others or not isinstance(findings, list):
            raise GuaranteeBroken(8, "a member shows other members of its group", str(others), str(found))
        if not self._has_store:
            self._look_at_entries(shown)
        self._refuse_wrong(state)

    def _look_at_entries(self, shown: Shown) -> None:
        end = shown.state.visible
        for first, count in ((0, 1_000), (0, 1), (max(0, end - 1), 2), (end, 5)):
            request = {"op": "entries", "from": first, "max": count}
            answer = observed("a request", partial(self._operations.answer, request))
            _equals(request, answer, {"ok": True, **_entries(shown.state.log, first, count, end, shown.body_of)})

    def _refuse_wrong(self, state: Member) -> None:
        for request in (*_WRONG_EVERYWHERE, *(_WRONG_MESSAGES if self._has_store else _WRONG_ENTRIES)):
            answer = observed("a request", partial(self._operations.answer, request))
            has_reason = isinstance(answer, dict) and set(answer) == {"ok", "error"} and bool(answer["error"])
            is_early = request.get("op") == "put" and answer == {"ok": False, "status": "NO_MAJORITY"}
            is_early = is_early and self._node.refusal is RaftStatus.NO_MAJORITY
            _require(request, answer, is_early or (has_reason and answer["ok"] is False))
        if self._application.member.log.end != state.end:
            raise GuaranteeBroken(8, "a wrong request changes the log")

    def judge_ended(self) -> None:
        """Contract 16: a member that has ended answers every request at once, and changes nothing."""
        requests: list[dict[str, Any]] = [{"op": "read"}, {"op": "transfer", "member": 0}]
        requests += [] if self._has_store else [{"op": "append", "body": "x"}]
        end = self._application.member.log.end
        for request in requests:
            answer = observed("a request", partial(self._operations.answer, request))
            if not isinstance(answer, Future) or not answer.done():
                raise GuaranteeBroken(16, f"a member that has ended does not answer {request}")
            _equals(
                request, observed("an answer", partial(self._operations.answer_of, request, answer.result(0))),
                {"ok": False, "status": "STOPPED"},
            )  # fmt: skip
        if self._has_store and self._node.failure:
            request = {"op": "put", "topic": "T", "body": "x"}
            answer = observed("a request", partial(self._operations.answer, request))
            _equals(request, answer, {"ok": False, "status": "STOPPED"})
        takes = not self._has_store and self._application.has_requests
        if takes or self._application.member.log.end != end:
            raise GuaranteeBroken(8, "a member that has ended takes requests")


def state_me(status: dict[str, Any]) -> object:
    """Return the number that a member says it has."""
    return status["member"]


def _answered(request: dict[str, Any], result: Answered, shown: Shown, *, has_store: bool) -> dict[str, Any]:
    """Return the answer to a request that has waited for the group."""
    is_ok = result.status == "OK"
    wanted: dict[str, Any] = {"ok": is_ok, "status": str(result.status)}
    if is_ok and request["op"] == "append":
        wanted |= {"index": result.place, "term": result.term}
    elif is_ok and request["op"] == "read" and has_store:
        wanted["end"] = result.place
    elif is_ok and request["op"] == "read":
        first, count = request.get("from", 0), request.get("max", 32)
        wanted |= _entries(shown.committed, first, count, result.place, shown.body_of)
    return wanted


def _put_answer(result: PutResult) -> dict[str, Any]:
    return {
        "ok": result.status is PutStatus.PUT_OK, "status": result.status.name, "offset": result.offset,
        "queue_offset": result.queue_offset, "message_id": result.message_id,
    }  # fmt: skip


def _entries(log: Sequence[Entry], first: int, count: int, end: int, body_of: Callable[[int], bytes]) -> dict[str, Any]:
    """Return entries of a log as the protocol has to write them."""
    rows = []
    for place in range(first, min(first + count, end)):
        body = body_of(log[place].payload)
        row: dict[str, Any] = {
            "index": place, "term": log[place].term, "body64": base64.b64encode(body).decode(),
        }  # fmt: skip
        with suppress(UnicodeDecodeError):
            row["body"] = body.decode()
        rows.append(row)
    return {"end": end, "entries": rows}


def _equals(request: dict[str, Any], answer: object, wanted: dict[str, Any]) -> None:
    if answer != wanted:
        raise GuaranteeBroken(
            8, f"the answer to {request} is another one", str(sorted(wanted.items())), _text_of(answer)
        )


def _text_of(answer: object) -> str:
    return str(sorted(answer.items())) if isinstance(answer, dict) else str(answer)


def _require(request: dict[str, Any], answer: object, holds: object) -> None:
    if not holds:
        raise GuaranteeBroken(8, f"the answer to {request} is not allowed", found=str(answer))
