"""The trace of a stepped run: turns of tasks, yield points, and places of switches.

Equal runs have equal traces. A trace is bounded: it keeps the last turns and counts the others.
"""

from collections import deque
from dataclasses import dataclass, field

from tornpage.properties.scheduler.accesses import NOTHING, Access

__all__ = ["TURNS_MAX", "Step", "StepTrace", "Turn"]

TURNS_MAX = 200
_TURNS_IN_TEXT = 20


@dataclass(frozen=True, slots=True)
class Turn:
    """One task ran without a switch, past `points` yield points, including the one at its end."""

    task: int
    points: int
    left_at: str

    def __str__(self) -> str:
        return f"task {self.task} x{self.points} to {self.left_at}"


@dataclass(slots=True)
class Step:
    """What one task did between two decisions, and the locations that it may have touched."""

    task: int
    access: Access = NOTHING


@dataclass(slots=True)
class StepTrace:
    """Filled by a run, also by one that fails; a run first clears a used trace.

    `options` has the number of runnable tasks at each decision, `chosen` the number that was taken there, including
    decisions past the end of the schedule. `integers_used` is the number of integers taken from the schedule. `forced`
    is 1 for each decision at which the current task could not continue, `locked` for each at which it can continue and
    holds a lock. With
    `records_accesses` each part of the run between two yield points is in `accesses`.
    """

    turns_max: int = TURNS_MAX
    steps: int = 0
    turns: deque[Turn] = field(default_factory=deque)
    turns_omitted: int = 0
    options: bytearray = field(default_factory=bytearray)
    chosen: bytearray = field(default_factory=bytearray)
    integers_used: int = 0
    forced: bytearray = field(default_factory=bytearray)
    locked: bytearray = field(default_factory=bytearray)
    records_accesses: bool = False
    accesses: list[Step] = field(default_factory=list)

    def clear(self) -> None:
        """Forget everything but the bound."""
        self.steps = self.turns_omitted = self.integers_used = 0
        self.turns.clear()
        self.options.clear()
        self.chosen.clear()
        self.forced.clear()
        self.locked.clear()
        self.accesses.clear()

    def decided(self, options: int, number: int, *, is_forced: bool, is_locked: bool = False) -> None:
        """Record a decision between several runnable tasks.

        It is locked if the current task holds a lock.
        """
        self.options.append(options)
        self.chosen.append(number)
        self.forced.append(is_forced)
        self.locked.append(is_locked)

    def add(self, turn: Turn) -> None:
        """Append a turn; the oldest one is dropped if there are too many."""
        self.turns.append(turn)
        if len(self.turns) > self.turns_max:
            self.turns.popleft()
            self.turns_omitted += 1

    @property
    def schedule(self) -> tuple[int, ...]:
        """The shortest schedule that gives this run: small integers, no zeros at the end."""
        return tuple(self.chosen.rstrip(b"\0"))

    def __str__(self) -> str:
        shown = list(self.turns)[-_TURNS_IN_TEXT:]
        before = self.turns_omitted + len(self.turns) - len(shown)
        omitted = f"{before} turns, then " if before else ""
        return f"{self.steps} yield points: {omitted}{' | '.join(map(str, shown))}"
