"""Search for an order of concurrent calls that a sequential specification allows.

1. Each call is one or several *moments*: points inside its time at which it takes effect, in the order of the call. An
   order is right if a call that ended before another one began comes first, and if the specification lets each moment
   follow the state that the moments before it lead to.
2. A specification may answer with several states if it does not know which one follows, and with none if the answer of
   the call is impossible.
3. A call without an answer may have had its moments or not.
4. `holds` comes with such an order. `broken` means that all orders were tried. `unknown` means that the search stopped
   after `steps_max` steps and proves nothing.

Source: the algorithm of Wing and Gong with Lowe's memory of what was tried (Testing for linearizability, 2016).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

__all__ = ["STEPS_MAX", "Found", "Point", "linearise"]

State = TypeVar("State", bound=Hashable)

STEPS_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class Point(Generic[State]):
    """A point in the time of a call, between `began` and `ended` (None: no answer).

    `apply` returns the states that may follow; `after` is the number of the moment that has to come before it, or -1.
    """

    name: str
    began: int
    ended: int | None
    apply: Callable[[State], Iterable[State]]
    after: int = -1


@dataclass(frozen=True, slots=True)
class Found(Generic[State]):
    """The result of a search: an order, the state after it, and the number of steps.

    If no order is complete, it is the longest one found.
    """

    verdict: Literal["holds", "broken", "unknown"]
    order: tuple[int, ...]
    state: State
    steps: int


@dataclass(slots=True)
class _Frame(Generic[State]):
    """One node of the search: moments done, the state after them, moments left to try."""

    done: int
    state: State
    moves: Iterator[tuple[int, State]]


class _Search(Generic[State]):
    """Depth-first search.

    Calls that ended first are tried first, because they mostly took effect in that order.
    """

    def __init__(self, points: Sequence[Point[State]], steps_max: int) -> None:
        self._points = points
        never = 1 << 62
        self._ends = [never if point.ended is None else point.ended for point in points]
        self._by_end = sorted(range(len(points)), key=lambda number: (self._ends[number], number))
        self._wanted = sum(1 << number for number, point in enumerate(points) if point.ended is not None)
        self._steps_max = steps_max
        self.steps = 0

    def run(self, initial: State) -> Found[State]:
        """Return the first order found."""
        frames = [_Frame(0, initial, self._moves(0, initial))]
        order: list[int] = []
        best: tuple[tuple[int, ...], State] = ((), initial)
        tried: set[tuple[int, State]] = set()
        while frames:
            frame = frames[-1]
            if frame.done & self._wanted == self._wanted:
                return Found("holds", tuple(order), frame.state, self.steps)
            if self.steps >= self._steps_max:
                return Found("unknown", *best, self.steps)
            move = next(frame.moves, None)
            if move is None:
                frames.pop()
                if order:
                    order.pop()
                continue
            number, state = move
            done = frame.done | 1 << number
            if (done, state) in tried:
                continue
            tried.add((done, state))
            order.append(number)
            frames.append(_Frame(done, state, self._moves(done, state)))
            if len(order) > len(best[0]):
                best = tuple(order), state
        return Found("broken", *best, self.steps)

    def _moves(self, done: int, state: State) -> Iterator[tuple[int, State]]:
        """Yield each moment that may be the next one, with each state after it."""
        points = self._points
        left = [number for number in self._by_end if not done >> number & 1]
        first_end = self._ends[left[0]] if left else 0
        for number in left:
            point = points[number]
            if point.began > first_end or (point.after >= 0 and not done >> point.after & 1):
                continue
            self.steps += 1
            for following in point.apply(state):
                yield number, following


def linearise(points: Sequence[Point[State]], initial: State, *, steps_max: int = STEPS_MAX) -> Found[State]:
    """Search for an order of the moments.

    Cost: exponential at worst, about linear if the answers fix the order.
    """
    return _Search(points, steps_max).run(initial)
