"""Two threads that refuse the reads of an ended member do not disturb each other.

Symptom: `read` could raise IndexError in the thread of a client while the node ended.
Cause: both threads take the waiting reads from one queue, and one of them may find it empty after a look.
Fix: an empty queue ends the loop (impl/raft/store_application.py).
Found by: reading the code.
"""

from collections import deque
from concurrent.futures import Future
from typing import Any

from tornpage.impl.raft.answers import Answered, RaftStatus
from tornpage.impl.raft.store_application import StoreApplication


class _TakenMeanwhile(deque[Any]):
    """A queue whose last element another thread takes after each look."""

    def __bool__(self) -> bool:
        is_filled = len(self) > 0
        if len(self) == 1:
            self.popleft()
        return is_filled


def test_refusal_of_an_emptied_queue_ends() -> None:
    application = StoreApplication.__new__(StoreApplication)
    application._reads, application._is_stopped = [], False
    first: Future[Answered] = Future()
    application._asked = _TakenMeanwhile([first, Future()])
    application.stop()
    assert first.result(timeout=0) == Answered(RaftStatus.STOPPED)
