"""Crash faults and opens of a lockstep run: a store is opened, judged and adopted.

The open uses the real load path. A crash is an image that is proven legal. Every judge checks the recovered store, and
the store is recovered once more.

An open under an I/O fault rule may be refused by the disk. It has to leave the directory as good as before: the next
open, without faults, is judged as if the first had never happened.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tornpage.impl.errors import StoreError
from tornpage.impl.store import MessageStore
from tornpage.model import crash as crashes
from tornpage.model import progress, schedule
from tornpage.model.operations import Crash, Operation, Step
from tornpage.model.progress import ConsumerProgress
from tornpage.model.schedule import Delivered
from tornpage.model.state import Clock, CommitLog, Record, State
from tornpage.model.step import step
from tornpage.properties.contract import GuaranteeBroken, observed, reading_store
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.choosing import PowerLoss, chosen, fitted
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.fault_rule_disk import FaultRuleDisk
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import ProcessKilled
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.judge.delay import opened_log
from tornpage.properties.judge.evidence import DERIVED_PATHS, LegalLogs, Recovered, key_of
from tornpage.properties.judge.judges import JUDGES, OF_THE_PROCESS
from tornpage.properties.judge.ledgers import (
    DELAY_OFFSETS,
    LegalVersions,
    SavedVersion,
    compare_record,
    version_text,
    versions_in,
)
from tornpage.properties.judge.progress import CONSUMER_FILES, expected_offsets
from tornpage.properties.judge.rulings import require
from tornpage.properties.judge.start import crash_left_whole_files
from tornpage.properties.lockstep.cache import VerdictCache
from tornpage.properties.lockstep.closing import close
from tornpage.properties.lockstep.io_faults import close_under_fault, count_faults
from tornpage.properties.lockstep.pair import Clients, Pair, Span
from tornpage.properties.lockstep.proofs import nothing_is_found, owed_proof, proof_is_used
from tornpage.properties.lockstep.reads import get_at
from tornpage.properties.lockstep.tables import tables_are_right, tables_in
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.log_places import LOG_PATHS, ROOT
from tornpage.properties.program.translation import store_config

__all__ = ["Observer", "Recovery"]

_SEEN = (*LOG_PATHS, *DERIVED_PATHS)
_OF_MORE_THAN_THE_PROCESS = tuple(judge for judge in JUDGES if judge not in OF_THE_PROCESS)
_DELIVERY, _GROUP_COMMIT = Step("schedule"), Step("group-commit")

Observer = Callable[[Recovered], None]
"""Called with each store that was recovered and judged outside of a shared verdict cache."""


class Recovery:
    """Recovery of one pair of store and model.

    `performed` are its operations, `losses` the effects of each power loss.
    """

    def __init__(self, pair: Pair, *, performed: Sequence[Operation], observer: Observer | None) -> None:
        self.losses: list[PowerLoss] = []
        self._pair = pair
        self._config = store_config(pair.settings)
        self._performed = performed
        self._observer = observer

    def open(self) -> None:
        """Open again after a close.

        All of the log is there, or what a poisoned store had made durable.
        """
        pair = self._pair
        if not pair.closed:
            close(pair)
        first, before = len(pair.files.events), pair.log
        legal = self.legal_between(before.changed(poisoned=False), before, kill=not before.poisoned)
        pair.environment.use_disk(pair.files, 0)
        pair.files.mend()
        owed, is_clean = owed_proof(pair), f"{ROOT}/abort" not in pair.files.paths()
        found = self.recover(pair.files, legal, self.versions_now())
        proof_is_used(pair, owed, found.store)
        if is_clean:
            nothing_is_found(pair, found.store)
        self.adopt(found, first=first, before=before)

    # ---- crashes -----------------------------------------------------------------------------------------------

    def legal_between(self, before: CommitLog, after: CommitLog, *, kill: bool) -> LegalLogs:
        """Return the legal logs of a crash while an operation leads from one log to another."""
        kind: crashes.Kind = "process kill" if kill else "power loss"
        return {key_of(log): log for log in crashes.crash(before, after, kind, layout=self._pair.layout)}

    def legal_at(self, span: Span, *, at_rest: bool, kill: bool) -> LegalLogs:
        """Return the legal logs of a crash inside an operation, or right after its answer."""
        before = span.at(at_rest=at_rest) if kill else span.at_power_loss(at_rest=at_rest)
        return self.legal_between(before, span.after, kill=kill)

    def image_at(self, position: int, crash: Crash) -> Image:
        """Return the image of a power loss at a journal position.

        Raises HarnessError if the image is not proven legal.
        """
        pair = self._pair
        base, journal, disk = pair.files.base, pair.files.journal, pair.settings.disk
        state = disk_state(base, journal, position, disk=disk)
        choices = chosen(in_flight_writes(state), crash.survived, crash.others)
        image = compose(state, choices)
        assert_legal(base, journal, position, choices, image, disk=disk)
        return image

    def fitted_crash(self, crash: Crash) -> Crash:
        """Return the crash with its fields limited to what is possible.

        `back` is inside the last operation, and each choice is an existing alternative.
        """
        pair = self._pair
        span = pair.spans[-1]
        back = min(crash.back, span.last - span.first)
        if crash.kill:
            return replace(crash, back=back, survived={}, others="lost")
        state = disk_state(pair.files.base, pair.files.journal, self.position(back), disk=pair.settings.disk)
        writes = in_flight_writes(state)
        self.losses.append(PowerLoss(tuple(writes), chosen(writes, crash.survived, crash.others)))
        return replace(crash, back=back, survived=fitted(writes, crash.survived, crash.others))

    def position(self, back: int) -> int:
        """Return the journal position `back` events before the last answer; 0 is at rest."""
        pair = self._pair
        return pair.files.events[pair.spans[-1].last - back] if back else len(pair.files.journal)

    def crash(self, crash: Crash) -> None:
        """Lose power or kill the process, recover, judge, and continue with the recovered store."""
        pair = self._pair
        before = pair.spans[-1].at_power_loss(at_rest=crash.back == 0) if crash.kill else None
        pair.environment.now_ms += crash.later_ms
        files, legal, versions = self.after_crash(crash)
        found = self.recover(files, legal, versions)
        pair.files = files
        self.adopt(found, first=0, before=before)

    def after_crash(self, crash: Crash) -> tuple[FaultRuleDisk, LegalLogs, LegalVersions]:
        """Return the disk after a crash, the legal logs, and the legal versions of progress files."""
        pair = self._pair
        span, back = pair.spans[-1], crash.back
        position = self.position(back)
        legal = self.legal_at(span, at_rest=back == 0, kill=crash.kill)
        versions = self.versions_at(span.last - back)
        if crash.kill:
            journal = (*pair.files.journal[:position], ProcessKilled())
            return pair.new_disk(pair.files.base, journal), legal, versions
        return pair.new_disk(self.image_at(position, crash)), legal, versions

    def versions_now(self) -> LegalVersions:
        """Return the version of each progress file while no operation runs."""
        return self.versions_at(len(self._pair.files.events))

    def versions_at(self, event: int) -> LegalVersions:
        """Return the versions that each progress file may have after a crash at an event."""
        return self._pair.memory.versions.legal_versions(event)

    def recover(
        self, files: RecordingFiles, legal: LegalLogs, versions: LegalVersions, *, cache: VerdictCache | None = None
    ) -> Recovered:
        """Open the store on a disk, judge it, and recover the result once more (contract 6).

        With an observer the two recoveries share a cache, because their process views are nearly always equal.
        """
        if cache is None and self._observer is not None:
            rng = random.Random(len(self._performed))
            cache = VerdictCache(rng, Counter(), Counter(), of_one_recovery=True)
        found = self.judged(files, legal, versions, cache=cache)
        self._pair.environment.give_up(self.recovers_again(found, cache=cache).store)
        return found

    @reading_store()
    def judged(
        self, files: RecordingFiles, legal: LegalLogs, versions: LegalVersions, *, cache: VerdictCache | None = None
    ) -> Recovered:
        """Open the store on a disk and judge it.

        With a cache, judges of the process alone are skipped for a process view that was judged before.
        """
        self.left_whole_files(files)
        versions_before = self.versions_on(files)
        found = self.judged_open(self._pair.open_on(files), files, legal, versions, versions_before, cache=cache)
        if self._observer is not None and (cache is None or cache.of_one_recovery):
            self._observer(found)
        return found

    def left_whole_files(self, files: RecordingFiles) -> None:
        """Contract 7: no file of the log and of the queues is incomplete.

        Files that were corrupted from outside are not judged.
        """
        pair = self._pair
        if not pair.memory.was_corrupted:
            config = self._config
            crash_left_whole_files(
                files.sizes(), log_bytes=config.mapped_file_size_commit_log,
                queue_bytes=config.consume_queue_file_bytes, ext_bytes=config.mapped_file_size_consume_queue_ext,
            )  # fmt: skip

    def judged_at_rest(self, *, legal: LegalLogs | None = None) -> Recovered:
        """Open the store on the durable disk, and judge it.

        Without `legal` logs nothing may be lost.
        """
        pair = self._pair
        legal = self.legal_between(pair.log, pair.log, kill=True) if legal is None else legal
        return self.judged(pair.new_disk(pair.durable(pair.files)), legal, self.versions_now())

    def versions_on(self, files: RecordingFiles) -> dict[str, SavedVersion]:
        """Return the versions of the progress files of a disk, as a process sees them."""
        return versions_in(_seen(files, self._pair.memory.versions.paths), self._pair.memory.versions.paths)

    def judged_open(
        self,
        store: MessageStore,
        files: RecordingFiles,
        legal: LegalLogs,
        versions: LegalVersions,
        versions_before: Mapping[str, SavedVersion],
        *,
        cache: VerdictCache | None = None,
        queues_created_late: bool = False,
    ) -> Recovered:
        """Judge a store that was just opened on a disk.

        `versions_before` are the versions of its progress files before the open.
        """
        pair = self._pair
        found = Recovered(
            store,
            files,
            pair.memory.ledger,
            pair.memory.derived,
            legal,
            pair.durable(files),
            pair.settings,
            pair.layout,
            pair.memory.was_corrupted,
            versions_before,
            versions,
            pair.memory.torn_files,
            queues_created_late,
        )
        is_judged = False
        if found.key in legal:
            derived = pair.memory.derived.with_deleted(legal[found.key].deleted, store.max_offset)
            view = None if cache is None else (files.seen(_SEEN), pair.environment.memory_of(store))
            found = replace(found, derived=derived, view=view)
            is_judged = cache is not None and cache.is_judged(found)
        judges = _OF_MORE_THAN_THE_PROCESS if is_judged else JUDGES
        for judge in judges:
            require(judge(found))
        if cache is not None:
            cache.work["recoveries"] += 1
            cache.looked.update(judge.__name__ for judge in judges)
        return found

    @staticmethod
    def after_recovery(found: Recovered) -> tuple[LegalLogs, LegalVersions]:
        """Return the legal logs and versions of a power loss after a recovery: those it left."""
        said = versions_in(found.durable.files, found.legal_versions)
        return {found.key: found.legal[found.key]}, {path: frozenset((each,)) for path, each in said.items()}

    @reading_store()
    def recovers_again(self, found: Recovered, *, cache: VerdictCache | None = None) -> Recovered:
        """Contract 6: a recovery of the durable result of a recovery gives the same log."""
        legal, versions = self.after_recovery(found)
        try:
            again = self.judged(self._pair.last_disk(found.durable), legal, versions, cache=cache)
        except GuaranteeBroken as broken:
            raise GuaranteeBroken(6, f"a second recovery changes the store: {broken.sentence}") from broken
        if cache is None or not cache.has_delivered(again):
            _delivers_the_rest(self._pair, again)
        return again

    def continue_with(self, found: Recovered, files: FaultRuleDisk) -> None:
        """Continue with a store that was just recovered on a disk, after a close."""
        self._pair.files = files
        self.adopt(found, first=0, before=None)

    def adopt(self, found: Recovered, *, first: int, before: CommitLog | None) -> None:
        """Continue with the recovered store, in a span from event `first` on.

        `before` is the model of the killed process, whose last answer was not delivered. It is None after any other
        end.
        """
        pair = self._pair
        legal = None if before is None else found.legal_versions
        pair.memory.recover(found, legal=legal, until=len(pair.files.events))
        pair.store, pair.spans, pair.had_faults = found.store, [], False
        pair.clients = Clients()
        pair.environment.use(pair.store)
        there = expected_offsets(found, pair.memory.consumer_file)
        consumers = ConsumerProgress(there, there)
        pair.cover("progress_corrected", there != found.versions_before[pair.memory.consumer_file])
        pair.cover("progress_recovered", bool(there))
        pair.cover("progress_crashed_in_save", len(found.legal_versions[pair.memory.consumer_file]) > 1)
        adopted = opened_log(found)
        if before is None:
            pair.log, pair.oldest = adopted, adopted.oldest_offset
        else:
            # the begin too: a file whose removal is only in the page cache may reappear until this open has ended
            pair.log = before.changed(poisoned=False, flags=0)
        pair.end_operation(first, State(adopted, consumers, tables=tables_in(found)))
        self._serves_all()
        tables_are_right(pair)

    def _serves_all(self) -> None:
        """Check that the store serves the messages of the model, and none at the log's end."""
        pair = self._pair
        served = [message.offset for message in observed("messages", lambda: list(pair.store.messages()))]
        expected = [record.offset for record in pair.log.retained]
        if served != expected:
            raise GuaranteeBroken(1, "the store serves other messages than it recovered", str(expected), str(served))
        for record in pair.log.records[-1:]:
            get_at(pair, record.offset, pair.log)
        get_at(pair, pair.log.end_offset, pair.log)

    # ---- I/O fault rules ------------------------------------------------------------------------------------------

    def crash_under_fault(self, crash: Crash) -> None:
        """Crash, and open as `open_under_fault` does."""
        pair = self._pair
        span, old = pair.spans[-1], pair.files
        before = span.at_power_loss(at_rest=crash.back == 0) if crash.kill else None
        pair.environment.now_ms += crash.later_ms
        disk, legal, versions = self.after_crash(crash)
        disk.rules, disk.fault_mattered, pair.files = old.rules, old.fault_mattered, disk
        self._open(legal, versions, before=before)

    def open_under_fault(self) -> None:
        """Close if needed, open under the fault, and open again without it if that is refused."""
        pair = self._pair
        if not pair.closed:
            close_under_fault(pair)
        before = pair.log
        sound = before.changed(poisoned=False)
        pair.environment.use_disk(pair.files, 0)
        self._open(self.legal_between(sound, sound, kill=not before.poisoned), self.versions_now(), before=before)

    def _open(self, legal: LegalLogs, versions: LegalVersions, *, before: CommitLog | None) -> None:
        """Open under the fault and judge; if refused, open again without the fault and judge that."""
        pair = self._pair
        disk, records = pair.files, len(pair.log.records)
        first, fired, said = len(disk.events), disk.fired, self.versions_on(disk)
        store, refusal = self._tried(fired=fired)
        faults, disk.rules = tuple(disk.rules), ()
        if store is not None:
            late = self._catches_up(store)
            found = self.judged_open(store, disk, legal, versions, said, queues_created_late=late)
            pair.environment.give_up(self.recovers_again(found).store)
        else:
            if leaks := disk.leaks():
                raise GuaranteeBroken(11, "a refused open still holds files", "nothing", "; ".join(leaks))
            found = self.recover(disk, legal, self._or_corrected(legal, versions))
        self.adopt(found, first=first, before=before)
        mattered = disk.fault_mattered or bool(refusal)
        count_faults(pair, faults, mattered=mattered or len(pair.log.records) < records)

    def _tried(self, *, fired: int) -> tuple[MessageStore | None, str]:
        """Open on the failing disk; return the store, or the reason for its refusal.

        The refusal has to be caused by the disk. A store that opens read-only because of it counts as refused.
        """
        disk = self._pair.files
        try:
            store = self._pair.open_on(disk)
        except GuaranteeBroken as refusal:
            if disk.fired == fired or not isinstance(refusal.__cause__, OSError | StoreError):
                raise
            return None, str(refusal)
        if store.read_only_reason is None or disk.fired == fired:
            return store, ""
        store.close()
        return None, store.read_only_reason

    def _catches_up(self, store: MessageStore) -> bool:
        """Step dispatch if a failed disk call left it work; return whether it had any."""
        service = self._pair.environment.service_of(store, "reput")
        if service is None:
            raise GuaranteeBroken(16, "the store lacks a service", "reput", "none of that name")
        is_late = service.is_woken or service.due_ms is not None
        if is_late:
            observed("step", service.step)
        return is_late

    def _or_corrected(self, legal: LegalLogs, versions: LegalVersions) -> LegalVersions:
        """Return legal versions of progress files that an open may have corrected.

        The correction may be that for any of the legal logs.
        """
        ends = {log.end_offset for log in legal.values()}
        corrected = {path: self._corrected(said, ends) for path, said in versions.items() if path in CONSUMER_FILES}
        corrected[DELAY_OFFSETS] = self._of_levels(versions.get(DELAY_OFFSETS, ()), legal)
        return {path: said | corrected.get(path, frozenset()) for path, said in versions.items()}

    def _of_levels(self, versions: Iterable[SavedVersion], legal: LegalLogs) -> frozenset[SavedVersion]:
        """Return saved progress of delay levels as an open limits it to their queues."""
        return frozenset(
            crashes.opened(log.changed(saved_delays=said), layout=self._pair.layout).saved_delays
            for said in versions
            for log in legal.values()
            if isinstance(said, tuple)
        )

    def _corrected(self, versions: Iterable[SavedVersion], ends: Iterable[int]) -> frozenset[SavedVersion]:
        found = set()
        for said in versions:
            for end_offset in ends:

                def end_of(topic: str, queue_id: int, end_offset: int = end_offset) -> int:
                    return self._pair.memory.derived.end_of((topic, queue_id), end_offset)

                if isinstance(said, tuple):
                    found.add(progress.corrected(said, end_of=end_of))
        return frozenset(found)


def _delivers_the_rest(pair: Pair, found: Recovered) -> None:
    """Contract 12: a recovered store that is discarded next delivers every delayed message.

    Each message is delivered at the first moment at which it is due, in the order of its level, and not earlier.
    """
    log, layout, environment = opened_log(found), found.layout, pair.environment
    due_ms = None if layout.role == "SLAVE" else schedule.earliest_due(log, layout)
    if due_ms is None:
        return
    service = environment.service_of(found.store, "schedule")
    if service is None:
        raise GuaranteeBroken(16, "the store lacks a service", "schedule", "none of that name")
    copies: list[Record] = []
    now_ms, append_fails, replica = environment.now_ms, environment.append_fails, environment.replica
    ahead_ms = environment.clock_ahead_ms
    environment.append_fails, environment.replica = False, "none"  # these settings are for the store in use
    try:
        environment.now_ms = due_ms - 1 - ahead_ms
        _round(found, log, service)
        while due_ms is not None:
            environment.now_ms = max(environment.now_ms, due_ms - ahead_ms)
            state, answer = next(step(State(log, clock=Clock(environment.now_ms, ahead_ms)), _DELIVERY, layout))
            _round(found, state.log, service)
            log = _answered(pair, found, state)
            assert isinstance(answer.note, Delivered)
            copies += answer.note.records
            due_ms = environment.clock_ms if log.pending else schedule.earliest_due(log, layout)
            due_ms = None if answer.note.refused else due_ms
        _are_there(found, copies)
        progress = tuple(observed("delay_offsets", found.store.delay_offsets).items())
        if progress != log.delays:
            sentence = "the progress after recovery is not that of the delivered messages"
            raise GuaranteeBroken(12, sentence, version_text(log.delays), version_text(progress))
    finally:
        environment.now_ms, environment.append_fails, environment.replica = now_ms, append_fails, replica
    pair.cover("delivered_after_recovery", len(copies))


def _round(found: Recovered, log: CommitLog, service: HandDriven) -> None:
    """Run a round of the service, and compare the end of the log."""
    observed("step", service.step)
    if found.store.max_offset != log.end_offset:
        ends, sentence = (str(log.end_offset), str(found.store.max_offset)), "delivery after recovery puts other copies"
        raise GuaranteeBroken(12, sentence, *ends)


def _answered(pair: Pair, found: Recovered, state: State) -> CommitLog:
    """Step group commit for the copies that wait for the disk; no copy waits for a replica."""
    service = pair.environment.service_of(found.store, "group-commit")
    if not state.log.pending or service is None:
        return state.log
    observed("step", service.step)
    after, _ = next(step(state, _GROUP_COMMIT, found.layout))
    return after.log


def _are_there(found: Recovered, copies: list[Record]) -> None:
    """Check that every copy can be read and is what the model has put."""
    observed("flush", found.store.flush)
    for record in copies:
        buffer = observed("select_message_by_offset", partial(found.store.select_message_by_offset, record.offset))
        if buffer is None:
            raise GuaranteeBroken(12, f"the copy at {record.offset} cannot be read after recovery")
        file_bytes = found.layout.file_bytes
        with buffer:
            base = record.offset // file_bytes * file_bytes
            compare_record(bytes(buffer), record, base=base, file_bytes=file_bytes)


def _seen(files: RecordingFiles, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the visible content of some state files and their backups."""
    there = set(files.paths())
    names = (name for path in paths for name in (path, f"{path}.bak"))
    return {name: files.peek(name, 0, 1 << 40) for name in names if name in there}
