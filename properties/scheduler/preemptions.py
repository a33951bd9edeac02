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

_FREE_SHARE: Final = 0.75
"""The share of the schedules of a drawn search that differ where the task holds no lock, as long as there are some."""

_Differing = tuple[bytes, int, int]
"""The decisions of a run, the place of one of them, and what is chosen there instead."""


class PreemptionSearch:
    """Yields each schedule with at most `most` preemptions once, those with fewer first.

    The caller passes the trace of each schedule to `ran` before it takes the next one. `completed` is the number of
    preemptions up to which all schedules were taken, -1 before the first of these numbers.

    With `rng` the order is drawn, so that the first schedules are a sample of all. Most of them have one preemption, as
    most races need one. Most preempt a task that holds no lock. Under a lock the other tasks soon wait for it, so
    neighbouring places give one order. A race is an access that no common lock guards (source: S. Savage et al.,
    "Eraser: a dynamic data race detector for multithreaded programs", SOSP 1997).
    """

    def __init__(self, most: int, rng: Random | None = None) -> None:
        self.completed = -1
        self._most = most
        self._rng = rng
        self._free: list[deque[_Differing]] = [deque() for _ in range(most + 1)]
        self._locked: list[deque[_Differing]] = [deque() for _ in range(most + 1)]
        self._free[0].append((b"", -1, 0))
        self._current: tuple[bytes, int] = (b"", 0)

    def schedules(self) -> Iterator[tuple[int, ...]]:
        """Yield the schedules."""
        while True:
            while self.completed < self._most and not self._is_waiting(self.completed + 1):
                self.completed += 1
            if self.completed == self._most:
                return
            preemptions, waiting = self._next()
            before, at, number = waiting.popleft()
            schedule = before if at < 0 else before[:at] + bytes((number,))
            self._current = schedule, preemptions
            yield tuple(schedule)

    def _is_waiting(self, level: int) -> bool:
        return bool(self._free[level] or self._locked[level])

    def _next(self) -> tuple[int, deque[_Differing]]:
        """Return the preemptions of the next schedule, and the queue that begins with it."""
        rng = self._rng
        if rng is None:
            level = self.completed + 1
            return level, self._free[level] or self._locked[level]
        levels = [level for level in range(self._most + 1) if self._is_waiting(level)]
        (level,) = rng.choices(levels, [_SHARES[min(level, len(_SHARES) - 1)] for level in levels])
        free, locked = self._free[level], self._locked[level]
        waiting = free if free and (not locked or rng.random() < _FREE_SHARE) else locked
        waiting.rotate(rng.randrange(len(waiting)))
        return level, waiting

    def ran(self, trace: StepTrace) -> None:
        """Note the schedules that differ from the last one at one later decision."""
        schedule, preemptions = self._current
        chosen = bytes(trace.chosen)
        for at in range(len(schedule), len(chosen)):
            level = preemptions + (not trace.forced[at])
            if level <= self._most:
                waiting = (self._locked if trace.locked[at] else self._free)[level]
                waiting.extend((chosen, at, number) for number in range(1, trace.options[at]))


def preemptions_of(trace: StepTrace) -> int:
    """Return the number of preemptions of a run."""
    decisions: Sequence[tuple[int, int]] = list(zip(trace.chosen, trace.forced, strict=True))
    return sum(bool(number) and not forced for number, forced in decisions)
