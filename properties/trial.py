"""One store on one recorded disk, beside its model: verbs are compared as they return, disasters are judged.

A trial is a function of its settings and operations: the clock is virtual, the disk is in memory. `Window` remembers,
for each verb, the events it spans and the model before and after, so that a crash may fall on any of them afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from impl.store import Components, MessageStore
from model import commitlog, disasters
from model.commitlog import CommitLog
from model.message import PutStatus
from properties.bodies import BORN_TIMESTAMP, message_of
from properties.case import Close, Crash, Damage, FailSync, Flush, Get, Open, Operation, Put, Settings
from properties.certificate import assert_legal
from properties.damage import damaged_image
from properties.images import Choice, compose, disk_state, facts_of
from properties.judges import JUDGES, LOG_DIRECTORY, ROOT, LegalLogs, Recovered, durable_image
from properties.ledger import Ledger
from properties.planted import components_of
from properties.recorder.dirty import DirtyTracker
from properties.recorder.disk import Image
from properties.recorder.journal import Entry, ProcessKilled
from properties.recorder.recording_files import EMPTY_DISK, RecordingFiles
from properties.translation import layout_of, store_config, store_message
from properties.verdict import GuaranteeBroken

__all__ = ["Trial", "Window"]

Result = TypeVar("Result")

_OTHER_FILES_BYTES = 4096 + 512 + 4
"""Room for checkpoint, floor and lock: less than one more log file of any size that trials use, with what is free."""


@dataclass(frozen=True, slots=True)
class Window:
    """One verb: events `first` to `last` (exclusive) fall into it; the model leads from `before` to `after`."""

    first: int
    last: int
    before: CommitLog
    after: CommitLog

    def at(self, *, at_rest: bool) -> CommitLog:
        """Return what had been answered when a crash fell into the verb, or right after it."""
        return self.after if at_rest else self.before


class Trial:
    """Carries out operations one by one. Raises GuaranteeBroken where a promise does not hold.

    `components` are the parts of the store, in place of those that `settings.bug` stands for.
    """

    def __init__(self, settings: Settings, *, tracker: DirtyTracker, components: Components | None = None) -> None:
        self.settings = settings
        self.layout = layout_of(settings)
        self._tracker = tracker
        self._components = components or components_of(settings.bug)
        self._config = store_config(settings)
        self.performed: list[Operation] = []
        self.now_ms = BORN_TIMESTAMP
        self.log = CommitLog()
        self.ledger = Ledger(file_bytes=settings.file_bytes)
        self.files = self.new_disk(EMPTY_DISK)
        self.closed = False
        self.windows: list[Window] = []
        self.store = self.open_on(self.files)
        self._end_verb(0, self.log)

    # ---- disks and stores ----------------------------------------------------------------------------------------

    def new_disk(self, base: Image, journal: tuple[Entry, ...] = ()) -> RecordingFiles:
        """Return a disk that holds an image, and the journal of the process killed on it."""
        budget = self.settings.files_max * self.settings.file_bytes + _OTHER_FILES_BYTES
        return RecordingFiles(base, tracker=self._tracker, journal=journal, budget_bytes=budget)

    def open_on(self, files: RecordingFiles) -> MessageStore:
        """Open the store on a disk by its real load path. A refusal breaks contract 7."""
        try:
            return MessageStore.open(
                ROOT, self._config, files=files, clock=lambda: self.now_ms, components=self._components
            )
        except Exception as error:
            raise GuaranteeBroken(7, f"the store does not open: {type(error).__name__}: {error}") from error

    def durable(self, files: RecordingFiles) -> Image:
        """Return what a disk of this trial holds for sure."""
        return durable_image(files, disk=self.settings.disk)

    # ---- verbs ---------------------------------------------------------------------------------------------------

    def run(self, operation: Operation) -> None:
        """Carry out one operation and compare.

        `performed` takes it in as it was carried out: a crash with the facts that were open, in numbers they had.
        """
        if isinstance(operation, Crash):
            operation = self._fitted(operation)
        self.performed.append(operation)
        match operation:
            case Put():
                self.put(operation)
            case Get(record, shift):
                self.get(record, shift)
            case Flush():
                self.flush()
            case Close():
                self.close()
            case Open():
                self.open()
            case FailSync():
                self.files.failing_syncs = 1
            case Crash():
                self.crash(operation)
            case Damage():
                self.damage(operation)
        self.disk_holds_the_log()

    def disk_holds_the_log(self) -> None:
        """After every operation the files are, byte for byte, what was put, and zero behind it (contract 1)."""
        file_bytes = self.settings.file_bytes
        for base in range(0, self.log.end_offset, file_bytes):
            found = self._peek(f"{base:020d}", 0, file_bytes)
            if found != self.ledger.expected(base, self.log.end_offset):
                raise GuaranteeBroken(1, f"the log file at {base} holds other bytes than were put")

    def _end_verb(self, first: int, after: CommitLog) -> None:
        self.files.mark("returned")
        self.windows.append(Window(first, len(self.files.events), self.log, after))
        self.log = after

    def put(self, put: Put) -> None:
        """Put a message; a closed store answers SERVICE_NOT_AVAILABLE."""
        message = message_of(put)
        first, fails = len(self.files.events), bool(self.files.failing_syncs)
        self.now_ms += put.advance_ms
        if self.closed:
            after, outcome = self.log, commitlog.PutOutcome(PutStatus.SERVICE_NOT_AVAILABLE)
        else:
            after, outcome = commitlog.append(
                self.log, message, layout=self.layout, store_timestamp=self.now_ms, sync_fails=fails
            )
        result = _observed("put", lambda: self.store.put(store_message(message)))
        found = (result.status.value, result.offset, result.size_bytes, result.queue_offset, result.store_timestamp)
        record = outcome.record
        expected = (outcome.status.value, *((-1,) * 4)) if record is None else (
            outcome.status.value, record.offset, record.size_bytes, record.queue_offset, record.store_timestamp
        )  # fmt: skip
        if found != expected:
            raise GuaranteeBroken(8, "a put answers otherwise than the model", str(expected), str(found))
        if record is not None:
            self.ledger.note(record, end_before=self.log.end_offset, peek=self._peek)
        self._end_verb(first, after)
        self._compare_watermarks()

    def _peek(self, name: str, position: int, size_bytes: int) -> bytes:
        return self.files.peek(f"{LOG_DIRECTORY}/{name}", position, size_bytes)

    def flush(self) -> None:
        """Flush; a failed sync is answered as such and moves nothing."""
        first = len(self.files.events)
        after, durable = commitlog.flush(self.log, sync_fails=bool(self.files.failing_syncs))
        result = _observed("flush", self.store.flush)
        if result.durable != durable:
            raise GuaranteeBroken(9, "a flush answers otherwise than the model", str(durable), str(result.durable))
        self._end_verb(first, after)
        self._compare_watermarks()

    def _compare_watermarks(self) -> None:
        if self.closed:
            return
        _observed("check", self.store.check)
        expected = (self.log.flushed_offset, self.log.readable_end, self.log.end_offset)
        found = (self.store.flushed_offset, self.store.committed_offset, self.store.max_offset)
        if expected != found:
            raise GuaranteeBroken(9, "watermarks (flushed, readable, written) are wrong", str(expected), str(found))

    def get(self, record: int, shift: int) -> None:
        """Get at or beside a record; the store serves exactly what the model holds there."""
        base = self.log.records[record % len(self.log.records)].offset if self.log.records else 0
        self.get_at(base + shift, self.log)

    def get_at(self, offset: int, log: CommitLog) -> None:
        """Compare one get with the model."""
        status, expected = commitlog.get(log, offset)
        result = _observed("get", lambda: self.store.get(offset))
        if result.status.value != status.value:
            raise GuaranteeBroken(
                8, f"a get at offset {offset} answers otherwise than the model", status.value, result.status.value
            )
        if expected is not None and result.message is not None:
            message, found = expected.message, result.message
            served = (found.topic, found.body, found.queue_id, found.queue_offset, found.store_timestamp)
            put = (message.topic, message.body, message.queue_id, expected.queue_offset, expected.store_timestamp)
            if served != put:
                raise GuaranteeBroken(1, f"the message served at offset {offset} is not the one put there")

    def close(self) -> None:
        """Close cleanly, or as a poisoned store closes; nothing may leak."""
        if self.closed:
            return
        first = len(self.files.events)
        after = self.log if self.log.poisoned else commitlog.reopen(self.log)
        self.files.failing_syncs = 0
        _observed("close", self.store.close)
        self.closed = True
        self._end_verb(first, after)
        if self.files.leaks():
            raise GuaranteeBroken(11, "a closed store still holds files", "nothing", "; ".join(self.files.leaks()))
        if not after.poisoned:
            self._clean_exit_is_durable()

    def _clean_exit_is_durable(self) -> None:
        """After a clean close all of the log is on disk, and so is the word that the exit was clean (contract 2)."""
        stored = self.durable(self.files).files
        for base in range(0, self.log.end_offset, self.settings.file_bytes):
            if stored.get(f"{LOG_DIRECTORY}/{base:020d}") != self.ledger.expected(base, self.log.end_offset):
                raise GuaranteeBroken(2, f"a clean exit left the log file at {base} not durable")
        if f"{ROOT}/abort" in stored:
            raise GuaranteeBroken(2, "a clean exit left its abort marker on disk")

    def open(self) -> None:
        """Open again after a close; all of the log is there, or what a poisoned store had made durable."""
        if not self.closed:
            self.close()
        first, before = len(self.files.events), self.log
        legal = self.legal_between(replace(before, poisoned=False), before, kill=not before.poisoned)
        found = self.recover(self.files, legal)
        self._adopt(found, first=first, before=before)

    # ---- disasters -----------------------------------------------------------------------------------------------

    def legal_between(self, before: CommitLog, after: CommitLog, *, kill: bool) -> LegalLogs:
        """Return the legal logs of a crash while a verb leads from one log to another."""
        survive = disasters.process_kill if kill else disasters.power_loss
        return {(len(log.records), log.end_offset): log for log in survive(before, after, layout=self.layout)}

    def legal_at(self, window: Window, *, at_rest: bool, kill: bool) -> LegalLogs:
        """Return the legal logs of a crash in a window, or right after its answer."""
        return self.legal_between(window.at(at_rest=at_rest), window.after, kill=kill)

    def image_at(self, position: int, survived: Crash) -> Image:
        """Return the image of a power loss at a journal position, proven legal. Raises HarnessError if it is not."""
        base, journal, disk = self.files.base, self.files.journal, self.settings.disk
        image = compose(disk_state(base, journal, position, disk=disk), survived.survived)
        assert_legal(base, journal, position, survived.survived, image, disk=disk)
        return image

    def _fitted(self, crash: Crash) -> Crash:
        """Return the crash with `back` inside the last verb and each choice among the alternatives there are."""
        window = self.windows[-1]
        back = min(crash.back, window.last - window.first)
        if crash.kill:
            return replace(crash, back=back, survived={})
        state = disk_state(self.files.base, self.files.journal, self.position(back), disk=self.settings.disk)
        fitted = {
            fact.name: _among(crash.survived[fact.name], fact.alternatives)
            for fact in facts_of(state)
            if crash.survived.get(fact.name, 0)
        }
        return replace(crash, back=back, survived=fitted)

    def position(self, back: int) -> int:
        """Return the journal position `back` events before the answer of the last verb; 0 is at rest."""
        return self.files.events[self.windows[-1].last - back] if back else len(self.files.journal)

    def crash(self, crash: Crash) -> None:
        """Lose power or kill the process, recover, judge, and go on with what was recovered."""
        window, back = self.windows[-1], crash.back
        position = self.position(back)
        legal = self.legal_at(window, at_rest=back == 0, kill=crash.kill)
        if crash.kill:
            journal = (*self.files.journal[:position], ProcessKilled())
            files = self.new_disk(self.files.base, journal)
        else:
            files = self.new_disk(self.image_at(position, crash))
        found = self.recover(files, legal)
        self.files = files
        self._adopt(found, first=0, before=window.at(at_rest=back == 0) if crash.kill else None)

    def recover(self, files: RecordingFiles, legal: LegalLogs) -> Recovered:
        """Open the store on a disk and let every judge look at it, then recover once more (contract 6)."""
        found = self.judged(files, legal)
        self.recovers_again(found)
        return found

    def judged(self, files: RecordingFiles, legal: LegalLogs) -> Recovered:
        """Open the store on a disk and let every judge look at it."""
        store = self.open_on(files)
        found = Recovered(store, files, self.ledger, legal, self.durable(files))
        for judge in JUDGES:
            judge(found)
        return found

    def recovers_again(self, found: Recovered) -> None:
        """Contract 6: recovering what is durable after a recovery gives the same log."""
        legal = {found.key: found.legal[found.key]}
        try:
            self.judged(self.new_disk(found.durable), legal)
        except GuaranteeBroken as broken:
            raise GuaranteeBroken(6, f"recovering twice is not recovering once: {broken.sentence}") from broken

    def _adopt(self, found: Recovered, *, first: int, before: CommitLog | None) -> None:
        self.ledger = self.ledger.copy()
        self.ledger.truncate(found.store.max_offset)
        self.store, self.closed, self.windows = found.store, False, []
        adopted = found.legal[found.key]
        self.log = adopted if before is None else replace(before, poisoned=False)
        self._end_verb(first, adopted)
        self._serves_all()

    def _serves_all(self) -> None:
        """What the store hands out is what the model holds: the messages, and nothing at the end."""
        served = [message.offset for message in _observed("messages", lambda: list(self.store.messages()))]
        expected = [record.offset for record in self.log.records]
        if served != expected:
            raise GuaranteeBroken(1, "the store serves other messages than it recovered", str(expected), str(served))
        for record in self.log.records[-1:]:
            self.get_at(record.offset, self.log)
        self.get_at(self.log.end_offset, self.log)

    def damage(self, damage: Damage) -> None:
        """Damage the closed store: it must open read-only, name the place, serve what verifies, change nothing."""
        if self.log.poisoned or not self.log.records:
            return
        self.close()
        harmed = damaged_image(
            damage,
            self.durable(self.files),
            self.log,
            file_bytes=self.settings.file_bytes,
            trailer=self.settings.trailer,
        )
        if harmed is None:
            self.open()
            return
        image, lost = harmed
        files = self.new_disk(image)
        store = self.open_on(files)
        if store.read_only_reason is None:
            raise GuaranteeBroken(7, f"damage at offset {lost.offset} goes unnoticed", "read-only", "read-write")
        named = [finding for finding in store.findings if finding.severity == "damage"]
        if not any(lost.offset <= finding.offset <= lost.end_offset for finding in named):
            raise GuaranteeBroken(7, f"no finding names the damage at offset {lost.offset}", found=str(named))
        served = {message.offset for message in store.messages()}
        expected = {record.offset for record in self.log.records if lost.spares(record)}
        if served != expected:
            raise GuaranteeBroken(7, "a damaged store serves the wrong records", str(expected), str(served))
        store.close()
        if self.durable(files).files != {**image.files}:
            raise GuaranteeBroken(7, "a damaged store was changed by opening it")
        self.files, self.closed, self.windows = self.new_disk(self.durable(self.files)), True, []
        self.store = store
        self._end_verb(0, self.log)


def _among(choice: Choice, alternatives: int) -> Choice:
    if isinstance(choice, int):
        return min(choice, alternatives - 1)
    return min(choice[0], alternatives - 1), min(choice[1], alternatives - 1), choice[2]


def _observed(verb: str, call: Callable[[], Result]) -> Result:
    """Run a verb of the store: no exception may escape for what the model calls an answer."""
    try:
        return call()
    except GuaranteeBroken:
        raise
    except Exception as error:
        raise GuaranteeBroken(8, f"{verb} raises {type(error).__name__}: {error}") from error
