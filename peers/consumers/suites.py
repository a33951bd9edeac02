"""What is compared: cases in chunks, what Java answers, and what ours answers.

A suite maps an answer of Java to the answer that ours has to give. It changes nothing but the differences that its
module lists, each by an exact rule. Cases are drawn from the number of the suite's chunk, so the digests of a recording
stand for Java where there is none.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from json import dumps
from typing import Any

from tornpage.peers.rocketmq.process import Process

__all__ = ["Case", "Difference", "Suite", "digest"]

Case = dict[str, Any]

_PER_REQUEST = 50


@dataclass(frozen=True, slots=True)
class Difference:
    """One case whose answers differ. `java` is what ours had to answer."""

    suite: str
    chunk: int
    case: Case
    java: Any
    ours: Any


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases of one kind. `verb` is the request that carries them to the driver."""

    name: str
    verb: str
    chunks: int
    cases: Callable[[int], Sequence[Case]]
    ours: Callable[[Case], Any]
    mended: Callable[[Case, Any], Any]
    """Maps a case and the answer of Java to the answer that ours has to give."""
    counts: Callable[[Case], int] = lambda case: 1
    """How many comparisons a case is."""

    def ours_of(self, chunk: int) -> list[Any]:
        """Return our answers to the cases of a chunk."""
        return [self.ours(case) for case in self.cases(chunk)]

    def java_of(self, process: Process, chunk: int) -> list[Any]:
        """Return what ours has to answer, from the answers of Java."""
        cases = self.cases(chunk)
        answers: list[Any] = []
        for begin in range(0, len(cases), _PER_REQUEST):
            answers += process.ask(self.verb, cases=cases[begin : begin + _PER_REQUEST])["answers"]
        return [self.mended(case, answer) for case, answer in zip(cases, answers, strict=True)]

    def differences(self, process: Process, chunk: int) -> tuple[str, Iterator[Difference]]:
        """Return the digest of a chunk, and the cases that differ."""
        java, ours = self.java_of(process, chunk), self.ours_of(chunk)
        rows = zip(self.cases(chunk), java, ours, strict=True)
        return digest(java), (Difference(self.name, chunk, *row) for row in rows if row[1] != row[2])


def digest(answers: Sequence[Any]) -> str:
    """Return a short digest of answers."""
    return sha256(dumps(answers, sort_keys=True).encode()).hexdigest()[:16]
