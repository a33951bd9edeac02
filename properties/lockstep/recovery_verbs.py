"""The endings of a trial and what follows them: a store is opened, by who has closed it or after a crash, and judged.

A crash is an image that is proven legal. What a store makes of it is looked at by every judge, and recovered once more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from impl.store import MessageStore
from model import disasters
from model.operations import Crash
from model.progress import ConsumerProgress
from model.state import CommitLog
from properties.contract import GuaranteeBroken, observed
from properties.disk.aimed_disk import AimedDisk
from properties.disk.certificate import assert_legal
from properties.disk.choosing import PowerLoss, chosen, fitted
from properties.disk.disk import Image
from properties.disk.images import compose, disk_state, facts_of
from properties.disk.journal import ProcessKilled
from properties.disk.recording_files import RecordingFiles
from properties.judge.delay_judges import opened_log
from properties.judge.judges import JUDGES, OF_THE_PROCESS, LegalLogs, Recovered
from properties.judge.progress_judges import expected_offsets
from properties.judge.progress_ledger import LegalVersions, ProgressLedger, Said, said_by
from properties.judge.queue_judges import DERIVED_PATHS
from properties.judge.recovered import key_of
from properties.judge.rulings import require
from properties.lockstep.delay_rests import delivers_the_rest
from properties.lockstep.delay_verbs import DelayVerbs
from properties.lockstep.known import Known
from properties.lockstep.trial_state import Window
from properties.program.log_places import LOG_PATHS

__all__ = ["RecoveryVerbs"]

_SEEN = (*LOG_PATHS, *DERIVED_PATHS)


class RecoveryVerbs(DelayVerbs):
    """Opening, power loss, kill and recovery of a trial."""

    def open(self) -> None:
        """Open again after a close; all of the log is there, or what a poisoned store had made durable."""
        if not self.closed:
            self.close()
        first, before = len(self.files.events), self.log
        legal = self.legal_between(replace(before, poisoned=False), before, kill=not before.poisoned)
        self.surroundings.use_disk(self.files, 0)
        self.files.mend()
        found = self.recover(self.files, legal, self.versions_now())
        self.adopt(found, first=first, before=before)

    # ---- crashes -----------------------------------------------------------------------------------------------

    def legal_between(self, before: CommitLog, after: CommitLog, *, kill: bool) -> LegalLogs:
        """Return the legal logs of a crash while a verb leads from one log to another."""
        survive = disasters.process_kill if kill else disasters.power_loss
        return {key_of(log): log for log in survive(before, after, layout=self.layout)}

    def legal_at(self, window: Window, *, at_rest: bool, kill: bool) -> LegalLogs:
        """Return the legal logs of a crash in a window, or right after its answer."""
        before = window.at(at_rest=at_rest) if kill else window.at_power_loss(at_rest=at_rest)
        return self.legal_between(before, window.after, kill=kill)

    def image_at(self, position: int, crash: Crash) -> Image:
        """Return the image of a power loss at a journal position, proven legal. Raises HarnessError if it is not."""
        base, journal, disk = self.files.base, self.files.journal, self.settings.disk
        state = disk_state(base, journal, position, disk=disk)
        choices = chosen(facts_of(state), crash.survived, crash.others)
        image = compose(state, choices)
        assert_legal(base, journal, position, choices, image, disk=disk)
        return image

    def fitted_crash(self, crash: Crash) -> Crash:
        """Return the crash with `back` inside the last verb and each choice among the alternatives there are."""
        window = self.windows[-1]
        back = min(crash.back, window.last - window.first)
        if crash.kill:
            return Crash(kill=True, back=back)
        state = disk_state(self.files.base, self.files.journal, self.position(back), disk=self.settings.disk)
        facts = facts_of(state)
        self.losses.append(PowerLoss(tuple(facts), chosen(facts, crash.survived, crash.others)))
        return replace(crash, back=back, survived=fitted(facts, crash.survived, crash.others))

    def position(self, back: int) -> int:
        """Return the journal position `back` events before the answer of the last verb; 0 is at rest."""
        return self.files.events[self.windows[-1].last - back] if back else len(self.files.journal)

    def crash(self, crash: Crash) -> None:
        """Lose power or kill the process, recover, judge, and go on with what was recovered."""
        before = self.windows[-1].at_power_loss(at_rest=crash.back == 0) if crash.kill else None
        self.now_ms += crash.later_ms
        files, legal, versions = self.after_crash(crash)
        found = self.recover(files, legal, versions)
        self.files = files
        self.adopt(found, first=0, before=before)

    def after_crash(self, crash: Crash) -> tuple[AimedDisk, LegalLogs, LegalVersions]:
        """Return the disk that a power loss or a kill leaves, the legal logs, and what progress files may say."""
        window, back = self.windows[-1], crash.back
        position = self.position(back)
        legal = self.legal_at(window, at_rest=back == 0, kill=crash.kill)
        versions = self.versions.legal_versions(window.last - back)
        if crash.kill:
            journal = (*self.files.journal[:position], ProcessKilled())
            return self.new_disk(self.files.base, journal), legal, versions
        return self.new_disk(self.image_at(position, crash)), legal, versions

    def versions_now(self) -> LegalVersions:
        """Return what each progress file says while nothing is under way."""
        return self.versions.legal_versions(len(self.files.events))

    def recover(
        self, files: RecordingFiles, legal: LegalLogs, versions: LegalVersions, *, known: Known | None = None
    ) -> Recovered:
        """Open the store on a disk and let every judge look at it, then recover once more (contract 6)."""
        found = self.judged(files, legal, versions, known=known)
        self.surroundings.give_up(self.recovers_again(found, known=known).store)
        return found

    def judged(
        self, files: RecordingFiles, legal: LegalLogs, versions: LegalVersions, *, known: Known | None = None
    ) -> Recovered:
        """Open the store on a disk and let every judge look at it.

        With what is `known`, judges of the process alone pass over one that has what another one had.
        """
        said_before = self.said_on(files)
        return self.judged_open(self.open_on(files), files, legal, versions, said_before, known=known)

    def said_on(self, files: RecordingFiles) -> dict[str, Said]:
        """Return what the progress files of a disk say to a process."""
        return said_by(_seen(files, self.versions.paths), self.versions.paths)

    def judged_open(
        self,
        store: MessageStore,
        files: RecordingFiles,
        legal: LegalLogs,
        versions: LegalVersions,
        said_before: Mapping[str, Said],
        *,
        known: Known | None = None,
        queues_came_late: bool = False,
    ) -> Recovered:
        """Let every judge look at a store that was just opened on a disk, whose progress files had said something."""
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
            self.torn_files,
            queues_came_late,
        )
        is_judged = False
        if found.key in legal:
            derived = self.derived.with_deleted(legal[found.key].deleted, store.max_offset)
            view = None if known is None else (files.seen(_SEEN), self.surroundings.memory_of(store))
            found = replace(found, derived=derived, view=view)
            is_judged = known is not None and known.is_judged(found)
        judges = [judge for judge in JUDGES if not (is_judged and judge in OF_THE_PROCESS)]
        for judge in judges:
            require(judge(found))
        if known is not None:
            known.work["recoveries"] += 1
            known.looked.update(judge.__name__ for judge in judges)
        return found

    @staticmethod
    def after_recovery(found: Recovered) -> tuple[LegalLogs, LegalVersions]:
        """Return what may be found after a power loss behind a recovery: what it has left."""
        said = said_by(found.durable.files, found.legal_versions)
        return {found.key: found.legal[found.key]}, {path: frozenset((each,)) for path, each in said.items()}

    def recovers_again(self, found: Recovered, *, known: Known | None = None) -> Recovered:
        """Contract 6: recovering what is durable after a recovery gives the same log."""
        legal, versions = self.after_recovery(found)
        try:
            again = self.judged(self.last_disk(found.durable), legal, versions, known=known)
        except GuaranteeBroken as broken:
            raise GuaranteeBroken(6, f"recovering twice is not recovering once: {broken.sentence}") from broken
        if known is None or not known.has_delivered(again):
            delivers_the_rest(self, again)
        return again

    def go_on_with(self, found: Recovered, files: AimedDisk) -> None:
        """Go on with a store that was just recovered on a disk, after a close."""
        self.files = files
        self.adopt(found, first=0, before=None)

    def adopt(self, found: Recovered, *, first: int, before: CommitLog | None) -> None:
        """Take over what was recovered, in a window from event `first` on; `before` is the log of who was not told."""
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
        if before is None:
            self._oldest = adopted.oldest_offset
        else:
            # the begin too: a file whose removal only the page cache knows may come back until this open has ended
            self.log = replace(before, poisoned=False, flags=0)
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


def _seen(files: RecordingFiles, paths: Iterable[str]) -> dict[str, bytes]:
    """Return what a process sees of some state files and their backups."""
    there = set(files.paths())
    names = (name for path in paths for name in (path, f"{path}.bak"))
    return {name: files.peek(name, 0, 1 << 40) for name in names if name in there}
