"""Run a foreign store beside the reference: compare operations, judge crash faults.

The operations are those of cases (properties/program), as far as other stores have them: puts, reads, flushes, close,
open and crashes. Writes are recorded like those of the crash lab's own disks, so that the same crash states,
persistence choices, certificates and shrinkers apply. Where a process cannot be traced, crashes are real kills between
two operations.
"""

import weakref
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tornpage.model.operations import Close, Crash, Flush, Get, GetMessage, Open, Operation, Put, QueryKey
from tornpage.model.payloads import message_of
from tornpage.model.state import CommitLog
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.choosing import PowerLoss, chosen, fitted
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import Entry, ProcessKilled
from tornpage.properties.foreign.judging import Expectation, found_by_key, judge_survivors, keys_in, shown
from tornpage.properties.foreign.protocol import TargetUnusable
from tornpage.properties.foreign.reference_store import CrashFault, ReferenceState
from tornpage.properties.foreign.session import StoreSession
from tornpage.properties.foreign.spec import read_spec
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.foreign.watching import EMPTY, Recorded, WatchedDirectory
from tornpage.properties.foreign.work_area import ProcessPool, WorkArea
from tornpage.properties.judge.rulings import require
from tornpage.properties.program.case import Case, Settings

__all__ = ["TargetSpan", "TargetTrial", "crashes_in_first_open", "is_in_first_open", "keys_of_put"]


@dataclass(frozen=True, slots=True)
class TargetSpan:
    """Hold the span of one operation: its events, and the reference before and after it.

    The events are `first` to `last` (exclusive). `operations` counts the operations up to and including this one.
    """

    first: int
    last: int
    before: ReferenceState
    after: ReferenceState
    operations: int


@dataclass(frozen=True, slots=True)
class _Answer:
    """Hold an answer to a verb of operation number `operations`.

    Messages up to the offset `power` survive a power loss, up to `kill` a kill.
    """

    operations: int
    verb: str
    power: int
    kill: int


class TargetTrial:
    """Run operations one by one on the store of `settings.target`, in a directory of its own.

    Raises GuaranteeBroken if a promise does not hold, TargetUnusable if there is no store to test. `performed` are the
    operations as carried out, `losses` what each power loss lost.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._spec = read_spec(settings.target, settings.bug)
        self.performed: list[Operation] = []
        self.losses: list[PowerLoss] = []
        self.spans: list[TargetSpan] = []
        self.coverage: Counter[str] = Counter()
        self.closed = False
        self._offsets: dict[int, int] = {}
        self._cut: frozenset[int] = frozenset()
        self._queues: set[tuple[str, int]] = set()
        self._answers: list[_Answer] = []
        self._workplace = WorkArea()
        self._ended = weakref.finalize(self, self._workplace.end)
        self.files: WatchedDirectory | Recorded
        self._watched: WatchedDirectory | None
        self._begin_disk(EMPTY)
        self.store = self._start(opens_again=False)
        self.promises = self.store.promises
        self.reference = self.promises.reference()
        self._end_verb(0, self.reference.state, "the first open")

    @property
    def log(self) -> CommitLog:
        """Return the log of the reference."""
        return self.reference.log

    @property
    def why_no_power_loss(self) -> str:
        """Return why no power loss can be made from the recording, or an empty string."""
        return why_untraceable() or self.files.unsupported

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

    def _carry_out(self, operation: Operation) -> None:
        first, before = len(self.files.events), self.reference.state
        match operation:
            case Put():
                self._put(operation)
            case Flush():
                self.store.flush()
                self.reference.flush()
            case Close():
                self._close()
            case Get(record):
                self._get(record)
                return
            case GetMessage():
                self._read(operation)
                return
            case QueryKey(key):
                self._find(key)
                return
            case _:
                return
        self._end_verb(first, before, operation.op)

    def _put(self, put: Put) -> None:
        body = (message_of(put).body or b"")[: self.promises.body_bytes_max]
        self._queues.add((put.topic, put.queue_id))
        keys = keys_of_put(put)
        offset, number = self.store.put(put.topic, put.queue_id, body, keys)
        expected_offset, expected = self.reference.put(put.topic, put.queue_id, body, keys)
        if self.promises.queues and number != expected:
            sentence = "a put returns another number than the next one of its queue"
            raise GuaranteeBroken(4, sentence, str(expected), str(number))
        if self.promises.offsets and offset in self._offsets.values():
            raise GuaranteeBroken(8, "a put returns an offset that another message has", "a new one", str(offset))
        self._offsets[expected_offset] = offset

    def _get(self, number: int) -> None:
        known = [record for record in self.log.records if record.offset in self._offsets]
        if known and self.promises.offsets:
            record = known[number % len(known)]
            self._same(self.store.get(self._offsets[record.offset]), self.reference.get(record.offset), "an offset")

    def _read(self, read: GetMessage) -> None:
        if self._queues and self.promises.queues:
            topic, queue = sorted(self._queues)[read.queue % len(self._queues)]
            number = max(0, read.shift)
            expected = self.reference.read(topic, queue, number)
            self._same(self.store.read(topic, queue, number), expected, f"a number of queue {topic} {queue}")

    def _find(self, number: int) -> None:
        keys = keys_in(self.log.records)
        if keys and self.promises.index:
            require(found_by_key(self.store, self.reference, *keys[number % len(keys)]))

    def _same(self, found: bytes | None, expected: bytes | None, what: str) -> None:
        if found != expected:
            raise GuaranteeBroken(
                17, f"{what} leads to another message than the one put", shown(expected), shown(found)
            )

    def _end_verb(self, first: int, before: ReferenceState, verb: str) -> None:
        assert self._watched is not None
        self._watched.look_after_answer()
        now = self.reference.state
        self._answers.append(_Answer(len(self.performed), verb, now.floor("power"), now.floor("kill")))
        self.spans.append(TargetSpan(first, len(self.files.events), before, now, len(self.performed)))

    # ---- sessions ----------------------------------------------------------------------------------------------------

    def _begin_disk(self, image: Image, *, base: Image | None = None, journal: tuple[Entry, ...] = ()) -> None:
        """Create a directory with a durable image, or with what a journal made of a base."""
        names = None if base is None else disk_state(base, journal, len(journal), disk="kill").visible()[0]
        root = self._workplace.new_disk(image, names)
        self.files = self._watched = WatchedDirectory(root, image if base is None else base, journal)

    def _start(self, *, opens_again: bool) -> StoreSession:
        assert self._watched is not None
        watched = None if self.why_no_power_loss else self._watched
        process = self._workplace.start(
            self._spec, self._watched.root, watched=watched, answer_seconds=self.settings.answer_seconds
        )
        return StoreSession(process, opens_again=opens_again)

    def _close(self) -> None:
        self.store.close()
        self.reference.close()
        self.closed = True

    def _reopen(self) -> None:
        """Open again after a close. Everything is there unless a close promises nothing."""
        if not self.closed:
            self._carry_out(Close())
        first, before = len(self.files.events), self.reference.state
        self._open_again(self.reference.survivors("kill"), "kill")
        self._end_verb(first, before, "open")

    def _open_again(self, legal: Mapping[int, ReferenceState], fault: CrashFault) -> int:
        """Open the present disk and continue with its content; return the number of lost messages."""
        records = self.log.records
        known = Expectation(
            records,
            min(legal),
            dict(self._offsets),
            self._cut,
            frozenset(self._queues),
            lambda number: self._promised_by(records[number].end_offset, fault),
        )
        self.store = self._start(opens_again=True)
        self.closed = False
        survived = judge_survivors(self.store, known, legal, self.reference)
        require(survived.ruling)
        gone = {record.offset for record in known.records[survived.count :]}
        self._cut |= {self._offsets.pop(offset) for offset in gone & self._offsets.keys()}
        return len(gone)

    def _promised_by(self, end_offset: int, fault: CrashFault) -> str:
        """Return the answer that promised the records up to an offset.

        It is the first answer of the latest unbroken row of answers that promise them.
        """
        first: _Answer | None = None
        for answer in self._answers:
            promised = (answer.power if fault == "power" else answer.kill) >= end_offset
            first = (first or answer) if promised else None
        if first is None:
            return ""
        operation = self.performed[first.operations - 1] if first.operations else None
        if first.verb == "close" and isinstance(operation, Open):
            return f"the close that operation {first.operations} (open) does first"
        if first.verb == "recovery":
            return f"the recovery after operation {first.operations} (crash), because `recovered` is promised"
        return f"the answer of operation {first.operations} ({first.verb})"

    # ---- crash faults ------------------------------------------------------------------------------------------------

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
        copy.settings, copy._spec, copy.promises = self.settings, self._spec, self.promises
        copy.performed, copy.losses = self.performed[: at.operations], list(self.losses)
        copy.spans, copy.coverage, copy.closed = self.spans[: span + 1], Counter(), False
        copy._offsets = {there: given for there, given in self._offsets.items() if there < at.after.log.end_offset}
        copy._cut, copy._queues = self._cut, set(self._queues)
        copy._answers = [answer for answer in self._answers if answer.operations <= at.operations]
        copy._workplace = WorkArea(pool)
        copy._ended = weakref.finalize(copy, copy._workplace.end)
        assert self._watched is not None
        copy._watched, copy.files = None, self._watched.until(at.last - 1)
        copy.reference = self.promises.reference()
        copy.reference.go_on_with(at.after)
        return copy

    def _crash(self, crash: Crash) -> None:
        """Lose power or kill the process, open what is left, judge it, and continue."""
        if self._watched is not None:
            self._workplace.end_process(self._watched)
        span = self.spans[-1]
        back = 0 if self.why_no_power_loss else min(crash.back, span.last - span.first)
        since = span.before if back else span.after
        if back:
            self._answers.pop()  # the last operation has not answered
        fault: CrashFault = "kill" if crash.kill else "power"
        if crash.kill:
            self.performed.append(Crash(kill=True, back=back))
            self._lose_process(back)
        else:
            self.performed.append(self._lose_power(replace(crash, back=back)))
        self.coverage[fault] += 1
        self.spans = []
        gone = self._open_again(self.reference.survivors(fault, since=since), fault)
        self.coverage[f"{fault}_lost"] += gone > 0
        self._end_verb(0, self.reference.state, "recovery")

    def _lose_process(self, back: int) -> None:
        """Continue in the directory as it is, or as it was at an earlier position.

        Nothing more becomes durable.
        """
        if self._watched is not None and back == 0:
            self._watched.process_died()
            return
        journal = (*self.files.journal[: self.position(back)], ProcessKilled())
        image = compose(disk_state(self.files.base, journal, len(journal), disk="kill"), {})
        self._begin_disk(image, base=self.files.base, journal=journal)

    def _lose_power(self, crash: Crash) -> Crash:
        """Continue with a crash state proved legal; return the crash with its in-flight writes."""
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
    has_answers = any(isinstance(operation, (Put, Flush, Close, Open)) for operation in case.operations)
    return not has_answers and crashes_in_first_open(case)


def crashes_in_first_open(case: Case) -> bool:
    """Return whether the first crash of a foreign store's case is inside its very first open."""
    if not case.settings.target:
        return False
    for operation in case.operations:
        if isinstance(operation, Crash):
            return operation.back > 0
        if isinstance(operation, (Put, Flush, Close, Open)):
            return False
    return False


def keys_of_put(put: Put) -> list[str]:
    """Return the keys of a message."""
    pairs = dict(pair.split("\x01", 1) for pair in put.properties.split("\x02") if "\x01" in pair)
    return [key for key in pairs.get("KEYS", "").split(" ") if key]
