"""The answers to requests of clients of a group."""

from concurrent.futures import Future
from enum import StrEnum
from typing import NamedTuple

__all__ = ["UNKNOWN", "Answered", "RaftStatus", "settle"]


class RaftStatus(StrEnum):
    """How a request of a client ended.

    After UNKNOWN an entry may be committed or not. After every other status but OK it never will be.
    """

    OK = "OK"
    NOT_LEADER = "NOT_LEADER"
    NO_MAJORITY = "NO_MAJORITY"
    BUSY = "BUSY"
    TOO_LARGE = "TOO_LARGE"
    STOPPED = "STOPPED"
    UNKNOWN = "UNKNOWN"


class Answered(NamedTuple):
    """The answer to a request.

    `place` is that of a committed entry, or the end of what a read may see; -1 without either.
    """

    status: RaftStatus
    place: int = -1
    term: int = -1


UNKNOWN = Answered(RaftStatus.UNKNOWN)


def settle(answer: "Future[Answered]", result: Answered) -> None:
    """Give a client its answer, unless it has cancelled its request."""
    if answer.set_running_or_notify_cancel():
        answer.set_result(result)
