"""What clients can ask of a member of a Raft group with a message store, as JSON objects.

| op | fields | answer |
|---|---|---|
| put, get, query, queues, flush | as of a store (operations.py) | as of a store |
| commit, progress | as of a store | progress of a group at this member; members do not share it (L20) |
| read | | end: a later get of this member sees every message that was acknowledged before the request |
| status | | the state of the member and of its store |
| transfer | member | status: OK if the leader has asked the member to lead |

A put is answered PUT_OK after a majority has its entry on its disks. After OUTCOME_UNKNOWN the message may be stored or
not. NOT_LEADER and NO_MAJORITY change nothing; `leader` and `leader_clients` name the leader if it is known.
"""

from concurrent.futures import Future
from typing import Any

from tornpage.impl.message.message import PutStatus
from tornpage.impl.raft.answers import Answered, RaftStatus
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.raft.store_application import StoreApplication
from tornpage.impl.serving.fields import Answer, BadRequest, Fields, number_of, refusal
from tornpage.impl.serving.operations import StoreOperations, put_answer, store_status

__all__ = ["RaftStoreOperations"]


class RaftStoreOperations(StoreOperations):
    """The operations of one member with a store. `begin` gives them their node."""

    _answered_later = ("put", "read", "transfer")

    def __init__(self, application: StoreApplication) -> None:
        super().__init__(lambda: application.store)
        self.application = application
        self._node: RaftNode | None = None
        self._known |= {"status": lambda _: self.status()}

    def begin(self, node: RaftNode) -> None:
        """Serve clients from now on."""
        self._node = node

    def answer(self, request: Fields) -> "Answer | Future[Any]":
        """Return the answer to a request, or a future for one that waits for the group."""
        node, operation = self._node, request.get("op")
        if node is None:
            return refusal("this member is starting")
        if operation == "read":
            return self.application.read()
        if operation == "transfer":
            try:
                return node.transfer(number_of(request, "member", high=self.application.member.members - 1))
            except BadRequest as error:
                return refusal(str(error))
        if operation == "put" and (node.failure or node.refusal is RaftStatus.NO_MAJORITY):
            return {"ok": False, "status": RaftStatus.STOPPED if node.failure else RaftStatus.NO_MAJORITY}
        return super().answer(request)

    def answer_of(self, request: Fields, result: Any) -> Answer:
        """Return the answer to a request that has waited for the group."""
        if isinstance(result, Answered):
            answer: Answer = {"ok": result.status is RaftStatus.OK, "status": result.status}
            if request.get("op") == "read" and result.status is RaftStatus.OK:
                answer["end"] = result.place
            is_refused = result.status is RaftStatus.NOT_LEADER
        else:
            answer, is_refused = put_answer(result), result.status is PutStatus.NOT_LEADER
        if is_refused and self._node is not None:
            answer |= {"leader": self.application.member.leader, "leader_clients": self._node.leader_clients}
        return answer

    def status(self) -> Answer:
        """Return the state of the member and of its store."""
        return {} if self._node is None else {**self._node.status(), **store_status(self.application.store)}
