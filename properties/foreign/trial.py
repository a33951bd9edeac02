"""Run a foreign store beside its model: compare operations, judge crash faults.

The operations are those of cases (properties/program): reads and writes of the store's shape, flushes, close, open and
crashes. Their meaning, and what a crash may leave, is in the shape (foreign/shapes). Writes are recorded like those of
the crash lab's own disks, so that the same crash states, persistence choices, certificates and shrinkers apply. Where a
process cannot be traced, crashes are real kills between two operations.
"""

import weakref
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from tornpage.model.operations import Call, Close, Crash, Flush, Open, Operation, Put
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.choosing import PowerLoss, chosen, fitted
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import Entry, ProcessKilled
from tornpage.properties.foreign.protocol import TargetUnusable
from tornpage.properties.foreign.session import StoreSession
from tornpage.properties.foreign.shapes.language import Fault
from tornpage.properties.foreign.shapes.registry import run_of
from tornpage.properties.foreign.spec import read_spec
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.foreign.watching import EMPTY, Recorded, WatchedDirectory
from tornpage.properties.foreign.work_area import ProcessPool, WorkArea
from tornpage.properties.program.case import Case, Settings

__all__ = ["TargetSpan", "TargetTrial", "crashes_in_first_open", "is_in_first_open"]


@dataclass(frozen=True, slots=True)
class TargetSpan:
    """Hold the span of one operation.

    It has its events, and the state of the model before and after it. The events are `first` to `last` (exclusive).
    `operations` counts the operations up to and including this one. `midway` are states after some answers of
    concurrent callers, each with the first event at which they had come.
    """

    first: int
    last: int
    before: Any
    after: Any
    operations: int
    midway: tuple[tuple[int, Any], ...] = ()

    def since(self, back: int) -> Any:
        """Return the state that had been answered `back` events before the last answer."""
        if not back:
            return self.after
        return next((state for first, state in reversed(self.midway) if first <= self.last - back), self.before)


class TargetTrial:
    """Run operations on the store of `settings.target`, in a directory of its own.

    Raises GuaranteeBroken if a promise does not hold, TargetUnusable if there is no store to test. `performed` are the
    operations as carried out, `losses` what each power loss lost. With a pool, a process may open the directories of
    several trials one after the other.
    """

    def __init__(self, settings: Settings, pool: ProcessPool | None = None) -> None:
        self.settings = settings
        self._spec = read_spec(settings.target, settings.bug)
        self.performed: list[Operation] = []
        self.losses: list[PowerLoss] = []
        self.spans: list[TargetSpan] = []
        self.coverage: Counter[str] = Counter()
        self.closed = False
        self._records = True
        self._workplace = WorkArea(pool)
        self._ended = weakref.finalize(self, self._workplace.end)
        self.files: WatchedDirectory | Recorded
        self._watched: WatchedDirectory | None
        self._begin_disk(EMPTY)
        self.store = self._start(opens_again=False)
        self.shape, self.promises = self.store.shape, self.store.promises
        self.book = run_of(self.shape, self.promises)
        self._end_verb(0, self.book.state)

    @property
    def why_no_power_loss(self) -> str:
        """Return why no power loss can be made from the recording, or an empty string."""
        return why_untraceable() or self.files.unsupported

    @property
    def asks_power_loss(self) -> bool:
        """Return whether a power loss can be made, and the store promises something after it."""
        return not (self.why_no_power_loss or self.promises.kills_only)

    def supports_power_loss(self, span: int) -> bool:
        """Return whether a power loss can be made of every event of an operation."""
        assert self._watched is not None
        return not why_untraceable() and self._watched.supports(self.spans[span].last - 1)

    @property
    def has_reused_process(self) -> bool:
        """Return whether a process had opened another directory before."""
        return self._workplace.has_reused

    def release(self) -> None:
        """End in order, so that a process of the pool can be used for another directory.

        Call `end` after it.
        """
        self._workplace.release()

    def end(self) -> None:
        """Kill the store and remove its directory."""
        self._ended()

    # ---- operations --------------------------------------------------------------------------------------------------

    def run(self, operation: Operation) -> None:
        """Carry out one operation and compare. An operation that other stores lack does nothing."""
        try:
            if isinstance(operation, Crash):
                self._crash(operation)
                return
            self.performed.append(operation)
            if isinstance(operation, Open):
                self._reopen()
            elif not self.closed:
                self._carry_out(operation)
        except GuaranteeBroken:
            self.end()
            raise

    def _carry_out(self, operation: Operation, *, answer: str = "") -> None:
        """Carry out an operation.

        `answer` names its answer, if it is not that of the present operation of the program.
        """
        first, before, number = len(self.files.events), self.book.state, len(self.performed)
        answer = answer or f"the answer of operation {number} ({operation.op})"
        match operation:
            case Flush():
                self.store.flush()
                self.book.flushed(answer)
            case Close():
                self.store.close()
                self.closed = True
                self.book.closed(answer)
            case _ if not self.book.carry_out(operation, self.store, number):
                return
            case _:
                self._end_verb(first, before, tuple(self.book.midway))
                return
        self._end_verb(first, before)

    def _end_verb(self, first: int, before: Any, midway: tuple[tuple[int, Any], ...] = ()) -> None:
        assert self._watched is not None
        if self._records:
            self._watched.look_after_answer()
        count, last = len(self.performed), len(self.files.events)
        self.spans.append(TargetSpan(first, last, before, self.book.state, count, midway))

    # ---- sessions ----------------------------------------------------------------------------------------------------

    def _begin_disk(self, image: Image, *, base: Image | None = None, journal: tuple[Entry, ...] = ()) -> None:
        """Create a directory with a durable image, or with what a journal made of a base."""
        names = None if base is None else disk_state(base, journal, len(journal), disk="kill").visible()[0]
        root = self._workplace.new_disk(image, names)
        self.files = self._watched = WatchedDirectory(root, image if base is None else base, journal)

    def _start(self, *, opens_again: bool) -> StoreSession:
        assert self._watched is not None
        watched = self._watched if self._records and not self.why_no_power_loss else None
        process = self._workplace.start(
            self._spec, self._watched.root, watched=watched, answer_seconds=self.settings.answer_seconds
        )
        try:
            return StoreSession(process, opens_again=opens_again)
        except TargetUnusable:
            if not self._workplace.leave_pool():
                raise
        return self._start(opens_again=opens_again)

    def _reopen(self) -> None:
        """Open again after a close. Everything is there unless a close promises nothing."""
        number = len(self.performed)
        if not self.closed:
            self._carry_out(Close(), answer=f"the close that operation {number} (open) does first")
        first, before = len(self.files.events), self.book.state
        self._open_again("kill", before)
        self.book.recovered(f"the answer of operation {number} (open)")
        self._end_verb(first, before)

    def _open_again(self, fault: Fault, since: Any) -> int:
        """Open the present disk and continue with its content; return the number of lost writes."""
        self.store = self._start(opens_again=True)
        self.closed = False
        return self.book.judge(self.store, fault, since)

    # ---- crash faults ------------------------------------------------------------------------------------------------

    def record_no_more(self) -> None:
        """Trace no process that starts from now on, because there will be one more crash at most."""
        self._records = False

    def position(self, back: int) -> int:
        """Return the journal position `back` events before the last answer.

        A `back` of 0 is at rest, after the answer.
        """
        return self.files.events[self.spans[-1].last - back] if back else len(self.files.journal)

    def branch(self, span: int, pool: ProcessPool | None = None) -> "TargetTrial":
        """Return a trial in the state after an operation of this one. It can do nothing but crash.

        With a pool, a process may open the directories of several branches one after the other.
        """
        copy = object.__new__(TargetTrial)
        at = self.spans[span]
        copy.settings, copy._spec = self.settings, self._spec
        copy.shape, copy.promises = self.shape, self.promises
        copy.performed, copy.losses = self.performed[: at.operations], list(self.losses)
        copy.spans, copy.coverage, copy.closed = self.spans[: span + 1], Counter(), False
        copy._records, copy._workplace = True, WorkArea(pool)
        copy._ended = weakref.finalize(copy, copy._workplace.end)
        assert self._watched is not None
        copy._watched, copy.files = None, self._watched.until(at.last - 1)
        copy.book = run_of(self.shape, self.promises)
        copy.book.go_on_with(at.after)
        return copy

    def _crash(self, crash: Crash) -> None:
        """Lose power or kill the process, open what is left, judge it, and continue."""
        was_killed = self._watched is not None and self._workplace.end_process(self._watched)
        span = self.spans[-1]
        back = 0 if self.why_no_power_loss else min(crash.back, span.last - span.first)
        since = span.since(back)
        fault: Fault = "kill" if crash.kill else "power"
        if crash.kill:
            self.performed.append(Crash(kill=True, back=back))
            self._lose_process(back, was_killed=was_killed)
        else:
            self.performed.append(self._lose_power(replace(crash, back=back)))
        self.coverage[fault] += 1
        self.spans = []
        gone = self._open_again(fault, since)
        self.coverage[f"{fault}_lost"] += gone > 0
        before, number = self.book.state, len(self.performed)
        self.book.recovered(f"the recovery after operation {number} (crash), because `recovered` is promised")
        self._end_verb(0, before)

    def _lose_process(self, back: int, *, was_killed: bool) -> None:
        """Continue in the directory as it is, or in one as it was at a position.

        Nothing more becomes durable. A process that was not killed may still write to the directory.
        """
        if self._watched is not None and was_killed and back == 0:
            self._watched.process_died()
            return
        journal = (*self.files.journal[: self.position(back)], ProcessKilled())
        image = compose(disk_state(self.files.base, journal, len(journal), disk="kill"), {})
        self._begin_disk(image, base=self.files.base, journal=journal)

    def _lose_power(self, crash: Crash) -> Crash:
        """Continue with a crash state proved legal; return the crash with its in-flight writes."""
        if self.promises.kills_only:
            raise TargetUnusable(f"{self.settings.target} promises nothing after a power loss (consistent: kill)")
        if self.why_no_power_loss:
            raise TargetUnusable(f"no power loss of {self.settings.target} can be made here: {self.why_no_power_loss}")
        base, journal, disk = self.files.base, self.files.journal, self.settings.disk
        position = self.position(crash.back)
        state = disk_state(base, journal, position, disk=disk)
        facts = in_flight_writes(state)
        choices = chosen(facts, crash.survived, crash.others)
        image = compose(state, choices)
        assert_legal(base, journal, position, choices, image, disk=disk)
        self.losses.append(PowerLoss(tuple(facts), choices))
        self._begin_disk(image)
        return replace(crash, survived=fitted(facts, crash.survived, crash.others))


def is_in_first_open(case: Case) -> bool:
    """Return whether a foreign store's case is about its creation.

    It then has nothing but crashes, and the first is inside the very first open.
    """
    has_answers = any(isinstance(operation, (Put, Call, Flush, Close, Open)) for operation in case.operations)
    return not has_answers and crashes_in_first_open(case)


def crashes_in_first_open(case: Case) -> bool:
    """Return whether the first crash of a foreign store's case is inside its very first open."""
    if not case.settings.target:
        return False
    for operation in case.operations:
        if isinstance(operation, Crash):
            return operation.back > 0
        if isinstance(operation, (Put, Call, Flush, Close, Open)):
            return False
    return False
