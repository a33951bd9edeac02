"""Calls as they happened: who asked what, what was answered, and the logical times between which that was.

A logical time is a number from one counter that all tasks share. A call that ended before another one began came first;
of two calls that overlap nobody knows. Threads of the operating system may share a recorder: taking the next number and
appending to a list are one step each for the interpreter.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

from tornpage.properties.judge.answers import Answer

__all__ = ["Call", "Recorder"]


@dataclass(slots=True)
class Call:
    """One call of one task. `ended` is None while there is no answer; the call may or may not have had an effect."""

    task: int
    request: Any
    began: int
    answer: Any = None
    ended: int | None = None

    def overlaps(self, other: "Call") -> bool:
        """Whether some moment belongs to both."""
        return (other.ended is None or self.began < other.ended) and (self.ended is None or other.began < self.ended)

    def __str__(self) -> str:
        answered = "no answer" if self.ended is None else _told(self.answer)
        return (
            f"task {self.task} [{self.began}, {'…' if self.ended is None else self.ended}] {self.request}: {answered}"
        )


@dataclass(slots=True)
class Recorder:
    """The history of one run, in the order in which the calls began."""

    calls: list[Call] = field(default_factory=list)
    _times: "itertools.count[int]" = field(default_factory=itertools.count)

    def begin(self, task: int, request: Any) -> Call:
        """Note that a task is about to ask."""
        call = Call(task, request, next(self._times))
        self.calls.append(call)
        return call

    def end(self, call: Call, answer: Any) -> None:
        """Note what was answered."""
        call.answer = answer
        call.ended = next(self._times)


def _told(answer: Any) -> str:
    """Return an answer in short; to a put: where its record is, and its number."""
    if isinstance(answer, Answer):
        return answer.status if answer.offset < 0 else f"{answer.status} #{answer.queue_offset} at {answer.offset}"
    if isinstance(answer, tuple):
        return f"[{', '.join(map(str, answer))}]"
    return "done" if answer is None else f"{answer}"
