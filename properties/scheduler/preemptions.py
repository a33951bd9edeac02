"""Search the schedules of a small program by their number of preemptions.

A preemption is a switch away from a task that could continue. Switches at waits and ends are not counted, and all of
them are tried. Most races need one or two preemptions, so a search in this order meets them early, and it can name the
bound up to which the program has no failure. Source: M. Musuvathi, S. Qadeer, "Iterative context bounding for
systematic testing of multithreaded programs", PLDI 2007.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from tornpage.properties.scheduler.trace import StepTrace

__all__ = ["PreemptionSearch", "preemptions_of"]


_SHARES: Final = (2, 6, 2)
"""The shares of the schedules of a drawn search, by number of preemptions from 0 on. The last is that of more."""


class PreemptionSearch:
    """Yields each schedule with at most `most` preemptions once, those with fewer first.

    The caller passes the trace of each schedule to `ran` before it takes the next one. `completed` is the number of
    preemptions up to which all schedules were taken, -1 before the first of these numbers.

    With `rng` the order is drawn, so that the first schedules are a sample of all. Most of them have one preemption, as
    most races need one.
    """

    def __init__(self, most: int, rng: Random | None = None) -> None:
        self.completed = -1
        self._most = most
        self._rng = rng
        self._waiting: list[deque[tuple[bytes, int, int]]] = [deque() for _ in range(most + 1)]
        self._waiting[0].append((b"", -1, 0))
        self._current: tuple[bytes, int] = (b"", 0)

    def schedules(self) -> Iterator[tuple[int, ...]]:
        """Yield the schedules."""
        while True:
            while self.completed < self._most and not self._waiting[self.completed + 1]:
                self.completed += 1
            if self.completed == self._most:
                return
            preemptions = self._next_level()
            before, at, number = self._waiting[preemptions].popleft()
            schedule = before if at < 0 else before[:at] + bytes((number,))
            self._current = schedule, preemptions
            yield tuple(schedule)

    def _next_level(self) -> int:
        """Return the number of preemptions of the next schedule.

        That schedule is the first waiting one with this number.
        """
        rng = self._rng
        if rng is None:
            return self.completed + 1
        levels = [level for level, waiting in enumerate(self._waiting) if waiting]
        (level,) = rng.choices(levels, [_SHARES[min(level, len(_SHARES) - 1)] for level in levels])
        self._waiting[level].rotate(rng.randrange(len(self._waiting[level])))
        return level

    def ran(self, trace: StepTrace) -> None:
        """Note the schedules that differ from the last one at one later decision."""
        schedule, preemptions = self._current
        chosen = bytes(trace.chosen)
        for at in range(len(schedule), len(chosen)):
            level = preemptions + (not trace.forced[at])
            if level <= self._most:
                self._waiting[level].extend((chosen, at, number) for number in range(1, trace.options[at]))


def preemptions_of(trace: StepTrace) -> int:
    """Return the number of preemptions of a run."""
    decisions: Sequence[tuple[int, int]] = list(zip(trace.chosen, trace.forced, strict=True))
    return sum(bool(number) and not forced for number, forced in decisions)
