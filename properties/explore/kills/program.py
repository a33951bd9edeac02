"""Run one program: draw it, rehearse it to count its steps, kill it in many cycles.

The seed and the number of the program decide the results of its cycles, regardless of the worker and of earlier
programs.
"""

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tornpage.impl.parts import Parts
from tornpage.model.operations import Close, CommitOffset, FailSync, FailWrite, Operation, QueryOffsets, RefuseFile
from tornpage.model.step import services_of
from tornpage.properties.explore.kills.cycle import Cycle, FirstSessions, KillReport, PlannedSession
from tornpage.properties.explore.kills.judged import AGAIN_EVERY, Judged
from tornpage.properties.explore.kills.zygote import Zygote
from tornpage.properties.program.case import Settings
from tornpage.properties.program.translation import layout_of
from tornpage.properties.program.workload import draw_operation, draw_settings

__all__ = ["CYCLES_PER_PROGRAM", "TOGETHER", "VIOLATIONS_MAX", "ProgramRunner"]

CYCLES_PER_PROGRAM = 25
TOGETHER = 9
"""The default number of first sessions that one process runs. Three processes run those of a program."""
_ALONE_EVERY = 10
"""The last of so many programs runs each session in a process of its own."""
VIOLATIONS_MAX = 10
_OPERATIONS_MIN, _OPERATIONS_SPREAD = 10, 8
_LATER_OPERATIONS = 5
_ANOTHER_SESSION_SHARE = 0.15
_SESSIONS_MAX = 3


@dataclass(frozen=True, slots=True)
class _Program:
    """Hold settings and operations of a program, and the steps per operation in rehearsal."""

    number: int
    settings: Settings
    operations: tuple[Operation, ...]
    steps: tuple[int, ...] = ()

    def draw_point(self, rng: random.Random) -> tuple[int, int]:
        """Draw an operation and one of its steps in the rehearsal.

        An operation with many steps is drawn more often, in proportion to their square root. Open and close examine and
        flush all queues and have so many steps that without the root hardly any process would die during a put.
        """
        (verb,) = rng.choices(range(len(self.steps)), weights=[steps**0.5 for steps in self.steps])
        return verb, 1 + rng.randrange(self.steps[verb])

    def draw_later_point(self, rng: random.Random, operations: int) -> tuple[int, int]:
        """Draw where an unrehearsed session dies: half of them die while opening what a kill left."""
        verb = 0 if rng.random() < 0.5 else rng.randrange(operations + 1)
        return verb, 1 + rng.randrange(max(1, self.steps[0]) if verb == 0 else max(1, *self.steps[1:]))


class ProgramRunner:
    """Run programs one at a time, in directories below `base` named after `name`.

    One process runs the first sessions of up to `together` cycles while the previous ones are judged.
    """

    def __init__(
        self, base: str, name: str, settings: Settings, components: Parts, *, together: int = TOGETHER
    ) -> None:
        self._base = base
        self._settings = settings
        self._components = components
        self._together = together
        self._workplaces = (f"{name}-even", f"{name}-odd")
        self._zygotes: list[Zygote] = []

    def __enter__(self) -> "ProgramRunner":
        for _ in self._workplaces:
            self._zygotes.append(Zygote(self._components, together_max=self._together))
        return self

    def __exit__(self, *_: object) -> None:
        for zygote in self._zygotes:
            zygote.end()
        for name in self._workplaces:
            for place in range(self._together):
                shutil.rmtree(f"{self._base}/{name}-{place}", ignore_errors=True)

    def run(self, cycles: Sequence[int], report: KillReport, is_given_up: Callable[[], bool]) -> None:
        """Run cycles of one program in order, until stopped or enough promises are broken."""
        number = cycles[0] // CYCLES_PER_PROGRAM
        rng = random.Random(f"kill {report.seed} program {number}")
        settings = replace(draw_settings(self._settings, rng), log_paths=1)  # the judge of kills reads one directory
        operations = _draw_operations(rng, _OPERATIONS_MIN + rng.randrange(_OPERATIONS_SPREAD), settings)
        judged = Judged(self._components, passed_over=rng.randrange(AGAIN_EVERY))
        program = self._rehearse(_Program(number, settings, operations), report, judged)
        together = 1 if report.mode == "bytecode" or number % _ALONE_EVERY == _ALONE_EVERY - 1 else self._together
        running: FirstSessions | None = None
        for turn, at in enumerate(range(0, len(cycles), together) if any(program.steps) else ()):
            several = [
                self._cycle(each, program, _draw_sessions(each, program, report), report, judged, turn, place)
                for place, each in enumerate(cycles[at : at + together])
            ]
            following = FirstSessions(several, self._zygotes[turn % 2])
            if running is not None:
                running.finish()
            running = following
            report.cycles += len(several)
            if is_given_up() or len(report.violations) >= VIOLATIONS_MAX:
                break
        if running is not None:
            running.finish()
        report.judged, report.recovered_twice = report.judged + judged.count, report.recovered_twice + judged.twice

    def _rehearse(self, program: _Program, report: KillReport, judged: Judged) -> _Program:
        """Return the program with its step counts.

        They are empty if the rehearsal failed, which is reported.
        """
        rehearsal = self._cycle(-1, program, [PlannedSession(program.operations)], report, judged, 1, 0)
        FirstSessions([rehearsal], self._zygotes[1]).finish()
        progress = self._zygotes[1].progress
        steps = tuple(max(0, progress.steps_of(verb)) for verb in range(len(program.operations) + 1))
        return replace(program, steps=steps)

    def _cycle(
        self,
        number: int,
        program: _Program,
        lives: list[PlannedSession],
        report: KillReport,
        judged: Judged,
        turn: int,
        place: int,
    ) -> Cycle:
        return Cycle(
            number,
            program.number,
            lives,
            settings=program.settings,
            base=self._base,
            workplace=f"{self._workplaces[turn % 2]}-{place}",
            zygote=self._zygotes[turn % 2],
            judged=judged,
            report=report,
        )


def _draw_sessions(number: int, program: _Program, report: KillReport) -> list[PlannedSession]:
    rng = random.Random(f"kill {report.seed} {report.mode} cycle {number}")
    lives = [PlannedSession(program.operations, *program.draw_point(rng))]
    while len(lives) < _SESSIONS_MAX and rng.random() < _ANOTHER_SESSION_SHARE:
        operations = _draw_operations(rng, _LATER_OPERATIONS, program.settings)
        lives.append(PlannedSession(operations, *program.draw_later_point(rng, len(operations))))
    return lives


def _draw_operations(rng: random.Random, count: int, settings: Settings) -> tuple[Operation, ...]:
    """Draw a session that ends with a clean close.

    Failing syncs and writes, consumer progress and delayed delivery are left to other explorers.
    """
    services = tuple(name for name in services_of(layout_of(settings)) if name != "schedule")
    operations: list[Operation] = []
    closed = False
    while len(operations) < count or closed:
        operation = draw_operation(rng, closed=closed, services=services)
        if not isinstance(operation, FailSync | FailWrite | RefuseFile | CommitOffset | QueryOffsets):
            closed = isinstance(operation, Close)
            operations.append(operation)
    return (*operations, Close())
