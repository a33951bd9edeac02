"""One store on one recorded disk, beside its model: verbs are compared as they return, disasters are judged.

A trial is a function of its settings and operations: the clock is virtual, the disk is in memory.
"""

from dataclasses import replace

from model import commitlog, disasters, flushing
from model.state import CommitLog
from properties.case import (
    Close,
    Concurrent,
    Crash,
    Damage,
    DiskUsed,
    FailAppend,
    FailSync,
    FailWrite,
    Flush,
    Get,
    Open,
    Operation,
    Put,
    PutBatch,
    ReplicaIs,
    Step,
    SwitchFlag,
)
from properties.certificate import assert_legal
from properties.damage import damaged_image
from properties.images import Choice, compose, disk_state, facts_of
from properties.judges import JUDGES, ROOT, LegalLogs, Recovered
from properties.log_places import log_files
from properties.recorder.disk import Image
from properties.recorder.journal import ProcessKilled
from properties.recorder.recording_files import RecordingFiles
from properties.service_verbs import ServiceVerbs
from properties.trial_state import Window, observed
from properties.verdict import GuaranteeBroken

__all__ = ["Trial", "Window"]


class Trial(ServiceVerbs):
    """Carries out operations one by one. Raises GuaranteeBroken where a promise does not hold.

    `components` are the parts of the store, in place of those that `settings.bug` stands for.
    """

    # ---- verbs ---------------------------------------------------------------------------------------------------

    def run(self, operation: Operation) -> None:
        """Carry out one operation and compare.

        `performed` takes it in as it was carried out: a crash with the facts that were open, in numbers they had.
        """
        if isinstance(operation, Crash):
            operation = self._fitted(operation)
        self.performed.append(operation)
        match operation:
            case Put() | PutBatch():
                self.put(operation)
            case Step():
                self.step(operation)
            case Concurrent():
                self.put_concurrently(operation)
            case SwitchFlag(bit, on):
                self.switch_flag(bit, on=on)
            case DiskUsed(percent):
                self.fill_disk(percent)
            case ReplicaIs(state):
                self.surroundings.replica = state
            case FailAppend():
                self.surroundings.append_fails = True
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
            case FailWrite():
                self.files.failing_writes = 1
            case Crash():
                self.crash(operation)
            case Damage():
                self.damage(operation)
        self.disk_holds_the_log()
        self.everybody_is_waited_for()

    def flush(self) -> None:
        """Flush; a failed sync, or a commit that fails, is answered as such and moves nothing."""
        first = len(self.files.events)
        after, durable = flushing.flush(
            self.log, sync_fails=bool(self.files.failing_syncs), write_fails=bool(self.files.failing_writes)
        )
        result = observed("flush", self.store.flush)
        if result.durable != durable:
            raise GuaranteeBroken(9, "a flush answers otherwise than the model", str(durable), str(result.durable))
        self.happened("sync_failed_under_flush()", after.poisoned and not self.log.poisoned)
        self.end_verb(first, after)
        self.compare_watermarks()

    def get(self, record: int, shift: int) -> None:
        """Get at or beside a record; the store serves exactly what the model holds there."""
        base = self.log.records[record % len(self.log.records)].offset if self.log.records else 0
        self.get_at(base + shift, self.log)

    def get_at(self, offset: int, log: CommitLog) -> None:
        """Compare one get with the model."""
        status, expected = commitlog.get(log, offset)
        result = observed("get", lambda: self.store.get(offset))
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
        """Close, cleanly or as a store closes whose disk fails; nobody waits any longer, and nothing may leak."""
        if self.closed:
            return
        first = len(self.files.events)
        after, clean = flushing.close(
            self.log, sync_fails=bool(self.files.failing_syncs), write_fails=bool(self.files.failing_writes)
        )
        if not after.poisoned:
            self.files.failing_syncs = 0  # what it would hit is no sync of the log
        observed("close", self.store.close)
        self.closed = True
        self.answer_all(after)
        self.happened("sync_failed_under_close()", after.poisoned and not self.log.poisoned)
        self.happened("unclean_for_a_commit", not clean and not after.poisoned)
        self.end_verb(first, after)
        self.note_what_the_page_cache_has()
        if self.files.leaks():
            raise GuaranteeBroken(11, "a closed store still holds files", "nothing", "; ".join(self.files.leaks()))
        if clean != (self.store.read_only_reason is None):
            reason = str(self.store.read_only_reason)
            raise GuaranteeBroken(2, "a close says otherwise than the model whether it was clean", str(clean), reason)
        if clean:
            self._clean_exit_is_durable()
        elif f"{ROOT}/abort" not in self.durable(self.files).files:
            raise GuaranteeBroken(2, "an exit that was not clean has removed its abort marker")

    def _clean_exit_is_durable(self) -> None:
        """After a clean close all of the log is on disk and nothing else, and the word that the exit was clean (2)."""
        stored = self.durable(self.files).files
        expected = {
            self.log_file(base): self.ledger.expected(base, self.log.end_offset)
            for base in range(0, self.log.files * self.settings.file_bytes, self.settings.file_bytes)
        }
        if {path: stored[path] for path in log_files(stored)} != expected:
            raise GuaranteeBroken(2, "a clean exit left the log not durable, or files that it has no use for")
        if f"{ROOT}/abort" in stored:
            raise GuaranteeBroken(2, "a clean exit left its abort marker on disk")
        self.checkpoint_is_right(self.log)

    def open(self) -> None:
        """Open again after a close; all of the log is there, or what a poisoned store had made durable."""
        if not self.closed:
            self.close()
        first, before = len(self.files.events), self.log
        legal = self.legal_between(replace(before, poisoned=False), before, kill=not before.poisoned)
        self.surroundings.use_disk(self.files, 0)
        self.files.mend()
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
        self.store, self.closed, self.windows, self._open = found.store, False, [], []
        self._unnoted = []
        self.surroundings.use(self.store)
        adopted = found.legal[found.key]
        self.log = adopted if before is None else replace(before, poisoned=False, flags=0)
        self.end_verb(first, adopted)
        self._serves_all()

    def _serves_all(self) -> None:
        """What the store hands out is what the model holds: the messages, and nothing at the end."""
        served = [message.offset for message in observed("messages", lambda: list(self.store.messages()))]
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
        self.files.mend()
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
        self.end_verb(0, self.log)


def _among(choice: Choice, alternatives: int) -> Choice:
    if isinstance(choice, int):
        return min(choice, alternatives - 1)
    return min(choice[0], alternatives - 1), min(choice[1], alternatives - 1), choice[2]
