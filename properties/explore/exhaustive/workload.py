"""Explore one workload: crash its last entry at every event in every way of the bound.

Earlier entries are only run. Their crashes belong to the shorter workloads that end with them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from tornpage.model.operations import Choice, Crash, Operation
from tornpage.model.state import CommitLog
from tornpage.properties.campaign.replay import Failure
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.failing_disk import FailingDisk
from tornpage.properties.disk.images import compose
from tornpage.properties.disk.journal import Entry, ProcessKilled
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.explore.exhaustive.choices import bounded_choices
from tornpage.properties.explore.exhaustive.operation_set import OPERATION_SET, Workload, is_crashed, operations_of
from tornpage.properties.explore.exhaustive.outcomes import CachingJudge, Judging, image_hash
from tornpage.properties.judge.evidence import LegalLogs, Recovered
from tornpage.properties.judge.ledgers import LegalVersions, versions_in
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, Settings

__all__ = ["CERTIFIED_EVERY", "Bound", "CrashState", "Enumerate", "WorkloadStates"]


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Hold a crash point in the last operation: `back` events before its answer, 0 at rest.

    `state` is the disk at that point, and `versions` are the legal versions of progress files. All crash points share
    one state object that is advanced, so use it before going to the next one.
    """

    back: int
    position: int
    state: DiskState
    versions: LegalVersions


def crash_points_of(run: Lockstep) -> Iterator[CrashPoint]:
    """Yield each event of the last operation of a run, then the point after its answer."""
    span, files = run.spans[-1], run.files
    state = DiskState(files.base, disk=run.settings.disk)
    applied = 0
    for event in range(span.first, span.last + 1):
        at_rest = event == span.last
        position = len(files.journal) if at_rest else files.events[event]
        state.apply_all(files.journal[applied:position])
        applied = position
        yield CrashPoint(span.last - event, position, state, run.recovery.versions_at(event))


CERTIFIED_EVERY = 16
"""One in this many power losses is proved legal by the independent checker, including the first of each operation."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Bound the choices at each event.

    At most `facts` in-flight writes differ from nothing, or from everything, that survives. Choices in which no more
    than `beyond` differ are left out. `facts` bounds the in-flight writes. If `recovery_facts` is not negative, each
    recovery is crashed at its events too, within that bound.
    """

    facts: int
    beyond: int = -1
    recovery_facts: int = -1


Enumerate = Callable[[DiskState, int, int], Iterator[Mapping[str, Choice]]]
"""Yield choices for a disk within a bound, leaving out those within `beyond`."""


@dataclass(frozen=True, slots=True)
class CrashState:
    """Hold one crash state: operations with the crash last, and hashes of image and outcome.

    `kind` is power, kill or recovery, or verb if an operation broke the promise without a crash.
    """

    kind: str
    done: tuple[Operation, ...]
    image: bytes = b""
    recovered: bytes = b""
    broken: GuaranteeBroken | None = None

    def failure(self, settings: Settings) -> Failure | None:
        """Return the broken promise with its case, or None."""
        return None if self.broken is None else Failure(Case(settings, self.done), self.broken)


@dataclass
class WorkloadStates:
    """Enumerate the crash states of the last entry of a workload.

    `certified` counts images that were proved legal. `judging` makes the judge of the images of one operation.
    """

    workload: Workload
    settings: Settings
    bound: Bound
    tracker: DirtyTracker
    judging: Callable[[], Judging] = CachingJudge
    choices: Enumerate = bounded_choices
    certified: int = 0
    _trial: Lockstep = field(init=False)
    _judge: Judging = field(init=False)
    _judge_again: Judging = field(init=False)
    _losses: int = field(init=False)
    _legal: dict[tuple[bool, bool], LegalLogs] = field(init=False)

    def everywhere(self) -> Iterator[CrashState]:
        """Yield each state in order. An operation that breaks a promise ends it.

        Raises HarnessError for an illegal image.
        """
        last = OPERATION_SET[self.workload[-1]].operations if self.workload else ()
        before = operations_of(self.workload)[: -len(last) or None] if last else ()
        done: tuple[Operation, ...] = ()
        try:
            self._trial = lockstep_of(self.settings, tracker=self.tracker)
            for operation in before:
                done = (*done, operation)
                self._trial.run(operation)
            if not last:
                yield from self._crashes(done)
            for operation in last:
                done = (*done, operation)
                self._trial.run(operation)
                if is_crashed(operation):
                    yield from self._crashes(done)
        except GuaranteeBroken as broken:
            yield CrashState("verb", done, broken=broken)

    def _crashes(self, done: tuple[Operation, ...]) -> Iterator[CrashState]:
        """Crash the last operation of the run everywhere."""
        self._judge, self._judge_again, self._losses, self._legal = self.judging(), self.judging(), 0, {}
        for place in crash_points_of(self._trial):
            yield from self._kill(place, done)
            yield from self._power_losses(place, done)

    def _kill(self, place: CrashPoint, done: tuple[Operation, ...]) -> Iterator[CrashState]:
        files = self._trial.files
        journal = (*files.journal[: place.position], ProcessKilled())
        legal = self._legal_at(place, kill=True)
        answered = self._trial.spans[-1].at_power_loss(at_rest=place.back == 0)
        state = CrashState("kill", (*done, Crash(kill=True, back=place.back)))
        yield from self._judged(state, lambda: self._disk(files.base, journal), place.versions, legal, answered)

    def _power_losses(self, place: CrashPoint, done: tuple[Operation, ...]) -> Iterator[CrashState]:
        files = self._trial.files
        legal = self._legal_at(place, kill=False)
        for survived in self.choices(place.state, self.bound.facts, self.bound.beyond):
            image = compose(place.state, survived)
            self._certify(files, place.position, survived, image)
            state = CrashState("power", (*done, Crash(back=place.back, survived=survived)), image_hash(image))
            yield from self._judged(state, partial(self._disk, image), place.versions, legal, None)

    def _legal_at(self, place: CrashPoint, *, kill: bool) -> LegalLogs:
        at_rest = place.back == 0
        if (at_rest, kill) not in self._legal:
            span = self._trial.spans[-1]
            self._legal[at_rest, kill] = self._trial.recovery.legal_at(span, at_rest=at_rest, kill=kill)
        return self._legal[at_rest, kill]

    def _disk(self, base: Image, journal: tuple[Entry, ...] = ()) -> FailingDisk:
        """Return a disk for a store that is discarded after judging or after crashes."""
        crashes_again = self.bound.recovery_facts >= 0
        return (self._trial.pair.new_disk if crashes_again else self._trial.pair.last_disk)(base, journal)

    def _judged(
        self,
        state: CrashState,
        disk: Callable[[], FailingDisk],
        versions: LegalVersions,
        legal: LegalLogs,
        answered: CommitLog | None,
    ) -> Iterator[CrashState]:
        """Yield a state with its outcome, then the crashes of a recovery made just now.

        `answered` is the log acknowledged by the killed process, or None after a power loss.
        """
        try:
            outcome = self._judge(self._trial, state.image, disk, legal, versions)
        except GuaranteeBroken as broken:
            yield replace(state, broken=broken)
            return
        yield replace(state, recovered=outcome.recovered)
        if outcome.found is not None and self.bound.recovery_facts >= 0:
            yield from self._crashes_of_recovery(state, outcome.found, answered)

    def _crashes_of_recovery(
        self, first: CrashState, found: Recovered, answered: CommitLog | None
    ) -> Iterator[CrashState]:
        """Crash a recovery at each of its events (contract 6).

        After a power loss the whole disk is durable, and the same log must come back. After a kill the page cache is
        lost with the power: only what was flushed before survives, also of progress files. A verdict found here must
        not stand for an equal image of the first crash, whose recovery is to be crashed too.
        """
        files, recovered = found.recording, found.legal[found.key]
        state = DiskState(files.base, disk=self.settings.disk)
        legal = self._trial.recovery.legal_between(answered or recovered, recovered, kill=False)
        corrected = versions_in(found.durable.files, found.versions_before)
        versions = {path: frozenset((said, corrected[path])) for path, said in found.versions_before.items()}
        if answered is not None:
            versions = {path: versions[path] | others for path, others in found.legal_versions.items()}
        applied = 0
        for number, position in enumerate(files.events):
            state.apply_all(files.journal[applied:position])
            applied = position
            for survived in self.choices(state, self.bound.recovery_facts, -1):
                image = compose(state, survived)
                self._certify(files, position, survived, image)
                crash = Crash(back=len(files.events) - number, survived=survived)
                again = CrashState("recovery", (*first.done, crash), image_hash(image))
                try:
                    disk = partial(self._trial.pair.last_disk, image)
                    outcome = self._judge_again(self._trial, again.image, disk, legal, versions)
                except GuaranteeBroken as broken:
                    yield replace(again, broken=broken)
                else:
                    yield replace(again, recovered=outcome.recovered)

    def _certify(self, files: RecordingFiles, position: int, survived: Mapping[str, Choice], image: Image) -> None:
        self._losses += 1
        if self._losses % CERTIFIED_EVERY == 1:
            self.certified += 1
            assert_legal(files.base, files.journal, position, survived, image, disk=self.settings.disk)
