"""A lock owner whose store breaks a promise about restarts; its argument names which.

test_restarts.py runs it as a program.
"""

import sys

from tornpage.impl.errors import StoreInUse
from tornpage.impl.io.store_lock import StoreLock
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.message.message import Message, PutResult
from tornpage.impl.parts import Parts
from tornpage.impl.recovery.opening import AbortMarker
from tornpage.properties.explore.kills.holder import hold


class EverybodyIn(StoreLock):
    """There is no lock."""

    def acquire(self) -> None:
        """Pass."""


class TouchesFirst(StoreLock):
    """Each opener writes into the lock file before it requests the lock."""

    def acquire(self) -> None:
        with open(f"{self._root}/lock", "ab") as file:
            file.write(b"!")
        super().acquire()


class NobodyIn(StoreLock):
    """The lock file of a killed opener counts as a lock."""

    def acquire(self) -> None:
        if self._files.stat(f"{self._root}/abort") is not None:
            raise StoreInUse(self._root)
        super().acquire()


class MarkerForgotten(AbortMarker):
    """There is no abort marker."""

    def create(self) -> None:
        """Pass."""

    def remove(self) -> None:
        """Pass."""


class MarkerStays(AbortMarker):
    """A clean exit leaves the marker."""

    def remove(self) -> None:
        """Pass."""


class AnsweredTwice(CommitLog):
    """A put returns the answer of the first one and does nothing."""

    _answer: PutResult | None = None

    def put(self, message: Message, *, now_ms: int) -> PutResult:
        if self._answer is None:
            self._answer = super().put(message, now_ms=now_ms)
        return self._answer


STORES = {
    "everybody-in": Parts({StoreLock: EverybodyIn}),
    "touches-first": Parts({StoreLock: TouchesFirst}),
    "nobody-in": Parts({StoreLock: NobodyIn}),
    "marker-forgotten": Parts({AbortMarker: MarkerForgotten}),
    "marker-stays": Parts({AbortMarker: MarkerStays}),
    "answered-twice": Parts({CommitLog: AnsweredTwice}),
}

if __name__ == "__main__":
    if sys.argv[1] == "mute":
        sys.exit(0)
    hold(sys.stdin, sys.stdout, STORES[sys.argv[1]])
