"""One store on one recorded disk, beside its model: verbs are compared as they return, disasters are judged.

A trial is a function of its settings and operations: the clock is virtual, the disk is in memory.
"""

from collections.abc import Iterable
from dataclasses import replace

from impl.store import MessageStore
from model import disasters
from model.progress import ConsumerProgress
from model.state import CommitLog
from properties.case import (
    CancelPull,
    ChangeRole,
    Clean,
    ClockStep,
    Close,
    CommitOffset,
    Concurrent,
    Crash,
    Damage,
    DelayOffsetsAre,
    DeleteTopics,
    DiskUsed,
    FailAppend,
    FailSync,
    FailWrite,
    Flush,
    Get,
    GetMessage,
    HarmDerived,
    HarmProgress,
    HoldBuffer,
    OffsetByTime,
    Open,
    OpenTwice,
    Operation,
    PullHeld,
    PullWhileDispatching,
    Put,
    PutBatch,
    QueryKey,
    QueryOffsets,
    RefuseFile,
    ReleaseBuffer,
    ReplicaIs,
    Step,
    SwitchFlag,
)
from properties.certificate import assert_legal
from properties.damage import Lost, damaged_image
from properties.delay_disasters import change_role, write_delay_offsets
from properties.delay_judges import opened_log
from properties.delay_rests import delivers_the_rest
from properties.delay_verbs import DelayVerbs
from properties.derived_damage import harmed_image
from properties.failing_disk import FailingDisk
from properties.images import Choice, compose, disk_state, facts_of
from properties.judges import JUDGES, LegalLogs, Recovered
from properties.progress_disasters import harm_progress
from properties.progress_judges import expected_offsets
from properties.progress_ledger import LegalVersions, ProgressLedger, said_by
from properties.recorder.disk import Image
from properties.recorder.journal import ProcessKilled
from properties.recorder.recording_files import RecordingFiles
from properties.recovered import key_of
from properties.trial_state import Window
from properties.verdict import GuaranteeBroken, observed

__all__ = ["Trial", "Window"]


class Trial(DelayVerbs):
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
            case Step(service="schedule"):
                self.deliver(operation)
            case Step():
                self.step(operation)
            case ClockStep():
                self.set_clock(operation)
            case DelayOffsetsAre():
                write_delay_offsets(self, operation)
            case ChangeRole():
                change_role(self, operation)
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
            case GetMessage():
                self.get_message(operation)
            case QueryKey():
                self.query_key(operation)
            case OffsetByTime():
                self.offset_by_time(operation)
            case Flush():
                self.flush()
            case Close():
                self.close()
            case Open():
                self.open()
            case OpenTwice():
                self.open_twice()
            case FailSync():
                self.files.failing_syncs = 1
            case FailWrite():
                self.files.failing_writes = 1
            case RefuseFile():
                self.files.refused_files = 1
            case Crash():
                self.crash(operation)
            case Damage():
                self.damage(operation)
            case HarmDerived():
                self.harm_derived(operation)
            case Clean():
                self.clean(operation)
            case DeleteTopics(in_use):
                self.delete_topics(in_use)
            case HoldBuffer(record):
                self.hold_buffer(record)
            case ReleaseBuffer():
                self.release_buffer()
            case PullHeld():
                self.pull_held(operation)
            case CancelPull():
                self.cancel_pull(operation)
            case CommitOffset():
                self.commit_offset(operation)
            case QueryOffsets():
                self.query_offsets(operation)
            case HarmProgress():
                harm_progress(self, operation)
            case PullWhileDispatching():
                self.pull_while_dispatching(operation)
        self.held_buffers_are_right()
        self.disk_holds_the_log()
        self.compare_queues()
        self.everybody_is_waited_for()

    def open(self) -> None:
        """Open again after a close; all of the log is there, or what a poisoned store had made durable."""
        if not self.closed:
            self.close()
        first, before = len(self.files.events), self.log
        legal = self.legal_between(replace(before, poisoned=False), before, kill=not before.poisoned)
        self.surroundings.use_disk(self.files, 0)
        self.files.mend()
        found = self.recover(self.files, legal, self.versions_now())
        self._adopt(found, first=first, before=before)

    # ---- disasters -----------------------------------------------------------------------------------------------

    def legal_between(self, before: CommitLog, after: CommitLog, *, kill: bool) -> LegalLogs:
        """Return the legal logs of a crash while a verb leads from one log to another."""
        survive = disasters.process_kill if kill else disasters.power_loss
        return {key_of(log): log for log in survive(before, after, layout=self.layout)}

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
        versions = self.versions.legal_versions(window.last - back)
        if crash.kill:
            journal = (*self.files.journal[:position], ProcessKilled())
            files = self.new_disk(self.files.base, journal)
        else:
            files = self.new_disk(self.image_at(position, crash))
        found = self.recover(files, legal, versions)
        self.files = files
        self._adopt(found, first=0, before=window.at(at_rest=back == 0) if crash.kill else None)

    def versions_now(self) -> LegalVersions:
        """Return what each progress file says while nothing is under way."""
        return self.versions.legal_versions(len(self.files.events))

    def recover(self, files: RecordingFiles, legal: LegalLogs, versions: LegalVersions) -> Recovered:
        """Open the store on a disk and let every judge look at it, then recover once more (contract 6)."""
        found = self.judged(files, legal, versions)
        self.recovers_again(found)
        return found

    def judged(self, files: RecordingFiles, legal: LegalLogs, versions: LegalVersions) -> Recovered:
        """Open the store on a disk and let every judge look at it."""
        said_before = said_by(_seen(files, versions), versions)
        store = self.open_on(files)
        found = Recovered(
            store,
            files,
            self.ledger,
            self.derived,
            legal,
            self.durable(files),
            self.settings,
            self.layout,
            self.was_harmed,
            said_before,
            versions,
        )
        if found.key in legal:
            deleted, end_offset = legal[found.key].deleted, store.max_offset
            found = replace(found, derived=self.derived.with_deleted(deleted, end_offset))
        for judge in JUDGES:
            judge(found)
        return found

    def recovers_again(self, found: Recovered) -> None:
        """Contract 6: recovering what is durable after a recovery gives the same log."""
        legal = {found.key: found.legal[found.key]}
        said = said_by(found.durable.files, found.legal_versions)
        versions = {path: frozenset((each,)) for path, each in said.items()}
        try:
            again = self.judged(self.last_disk(found.durable), legal, versions)
        except GuaranteeBroken as broken:
            raise GuaranteeBroken(6, f"recovering twice is not recovering once: {broken.sentence}") from broken
        delivers_the_rest(self, again)

    def go_on_with(self, found: Recovered, files: FailingDisk) -> None:
        """Go on with a store that was just recovered on a disk, after a close."""
        self.files = files
        self._adopt(found, first=0, before=None)

    def _adopt(self, found: Recovered, *, first: int, before: CommitLog | None) -> None:
        self.ledger = self.ledger.copy()
        self.ledger.truncate(found.store.max_offset)
        self.derived = self.derived.up_to(found.store.max_offset, found.legal[found.key].deleted)
        self.is_partly_dispatched = self.queue_sync_failed = False
        self.store, self.closed, self.windows, self._open = found.store, False, [], []
        self._unnoted, self._held, self._pulls = [], [], []
        self.surroundings.use(self.store)
        legal = None if before is None else found.legal_versions
        self.versions = ProgressLedger(found.said_before, legal=legal, until=len(self.files.events))
        there = expected_offsets(found, self.consumer_file)
        self.consumers = ConsumerProgress(there, there)
        self.happened("progress_corrected", there != found.said_before[self.consumer_file])
        self.happened("progress_recovered", bool(there))
        self.happened("progress_crashed_in_save", len(found.legal_versions[self.consumer_file]) > 1)
        adopted = opened_log(found)
        self.log = adopted
        if before is not None:
            self.log = replace(before, poisoned=False, flags=0, min_offset=adopted.min_offset, hanging=None)
        self.end_verb(first, adopted)
        self._serves_all()

    def _serves_all(self) -> None:
        """What the store hands out is what the model holds: the messages, and nothing at the end."""
        served = [message.offset for message in observed("messages", lambda: list(self.store.messages()))]
        expected = [record.offset for record in self.log.retained]
        if served != expected:
            raise GuaranteeBroken(1, "the store serves other messages than it recovered", str(expected), str(served))
        for record in self.log.records[-1:]:
            self.get_at(record.offset, self.log)
        self.get_at(self.log.end_offset, self.log)

    def harm_derived(self, harm: HarmDerived) -> None:
        """Harm a file that is made from the log: the store opens read-write, with everything made anew (contract 7)."""
        if self.log.poisoned:
            return
        self.files.mend()
        self.close()
        harmed = harmed_image(
            harm,
            self.durable(self.files),
            self.files.base,
            min_offset=self.log.min_offset,
            index_slots=self.settings.index_slots,
        )
        if harmed is None:
            self.open()
            return
        if harm.file == "queue" and self.has_a_queue_of_numbers_only():
            self.open()
            return
        before, is_noticed = self.log, harmed.is_noticed and self.store.read_only_reason is None
        files, self.was_harmed = self.new_disk(harmed.image), True
        found = self.recover(files, self.legal_between(before, before, kill=True), self.versions_now())
        named = [finding.severity for finding in found.store.findings]
        if "damage" in named or (is_noticed and not named):
            expected = "a note" if is_noticed else "no damage"
            raise GuaranteeBroken(7, f"a {harm.file} file that is {harm.harm} is not named", expected, str(named))
        self.files = files
        self._adopt(found, first=0, before=None)
        self.happened(f"{harm.file}_{harm.harm}")

    def damage(self, damage: Damage) -> None:
        """Damage the closed store: it serves what verifies.

        Where the whole log is checked it opens read-only besides, names the place, and changes nothing.
        """
        if self.log.poisoned or not self.log.retained or self.log.hanging is not None:
            return
        self.files.mend()
        self.close()
        left = replace(self.log, records=self.log.retained)
        harmed = damaged_image(
            damage,
            self.durable(self.files),
            left,
            file_bytes=self.settings.file_bytes,
            trailer=self.settings.trailer,
        )
        if harmed is None:
            self.open()
            return
        image, lost = harmed
        files = self.new_disk(image)
        store = self.open_on(files, whole_log=True)
        if store.read_only_reason is None:
            raise GuaranteeBroken(7, f"damage at offset {lost.offset} goes unnoticed", "read-only", "read-write")
        named = [finding for finding in store.findings if finding.severity == "damage"]
        if not any(lost.offset <= finding.offset <= lost.end_offset for finding in named):
            raise GuaranteeBroken(7, f"no finding names the damage at offset {lost.offset}", found=str(named))
        self._serves_what_verifies(store, lost)
        self._serves_what_verifies(self.open_on(self.last_disk(image)), lost)
        store.close()
        if self.durable(files).files != {**image.files}:
            raise GuaranteeBroken(7, "a damaged store was changed by opening it")
        self.files, self.closed, self.windows = self.new_disk(self.durable(self.files)), True, []
        self.store = store
        self.end_verb(0, self.log)

    def _serves_what_verifies(self, store: MessageStore, lost: Lost) -> None:
        """Whether an open has met the damage or not, no byte is served that fails a check, and every other one is."""
        served = {message.offset for message in observed("messages", lambda: list(store.messages()))}
        expected = {record.offset for record in self.log.retained if lost.spares(record)}
        if served != expected:
            raise GuaranteeBroken(7, "a damaged store serves the wrong records", str(expected), str(served))


def _seen(files: RecordingFiles, paths: Iterable[str]) -> dict[str, bytes]:
    """Return what a process sees of some state files and their backups."""
    there = set(files.paths())
    names = (name for path in paths for name in (path, f"{path}.bak"))
    return {name: files.peek(name, 0, 1 << 40) for name in names if name in there}


def _among(choice: Choice, alternatives: int) -> Choice:
    if isinstance(choice, int):
        return min(choice, alternatives - 1)
    return min(choice[0], alternatives - 1), min(choice[1], alternatives - 1), choice[2]
