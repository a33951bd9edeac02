"""What is compared: cases in chunks, what Java answers, and what ours answers.

A suite maps an answer of Java to the answer that ours has to give. It changes nothing but the differences that it
lists, each by an exact rule, and counts how often each rule has changed an answer. Cases are drawn from a seed and the
number of their chunk. So the digests of a recording stand for Java where there is none.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
    cases: Callable[[int, int], Sequence[Case]]
    """Maps a seed and a chunk to cases."""
    ours: Callable[[Case], Any]
    mended: Callable[[Case, Any, "Counter[str]"], Any]
    """Maps a case and the answer of Java to the answer that ours has to give; counts the rules that changed it."""
    rules: Mapping[str, str]
    """The differences: name and sentence."""
    counts: Callable[[Case], int] = lambda case: 1
    """How many comparisons a case is."""

    def ours_of(self, seed: int, chunk: int) -> list[Any]:
        """Return our answers to the cases of a chunk."""
        return [self.ours(case) for case in self.cases(seed, chunk)]

    def java_of(self, process: Process, seed: int, chunk: int, applied: Counter[str]) -> list[Any]:
        """Return what ours has to answer, from the answers of Java."""
        cases = self.cases(seed, chunk)
        answers: list[Any] = []
        for begin in range(0, len(cases), _PER_REQUEST):
            answers += process.ask(self.verb, cases=cases[begin : begin + _PER_REQUEST])["answers"]
        return [self.mended(case, answer, applied) for case, answer in zip(cases, answers, strict=True)]

    def differences(
        self, process: Process, seed: int, chunk: int, applied: Counter[str]
    ) -> tuple[str, list[Difference]]:
        """Return the digest of a chunk, and the cases that differ."""
        java, ours = self.java_of(process, seed, chunk, applied), self.ours_of(seed, chunk)
        rows = zip(self.cases(seed, chunk), java, ours, strict=True)
        return digest(java), [Difference(self.name, chunk, *row) for row in rows if row[1] != row[2]]


def digest(answers: Sequence[Any]) -> str:
    """Return a short digest of answers."""
    return sha256(dumps(answers, sort_keys=True).encode()).hexdigest()[:16]
