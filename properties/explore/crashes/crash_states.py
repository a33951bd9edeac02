"""Crash states of one life of a history: chosen, composed, recovered by the real load path, judged, recovered again.

What was done before while the history stood still is not done again, but for a share of it, drawn, which is compared
(lockstep/cache.py, docs/adr/0024). The second recovery of disks that differ only in queues and index, which are
proved anew at each open, or in what broken-off saves have left, is done for a part of them.
"""

import random
from collections.abc import Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from time import perf_counter

from tornpage.model.operations import WITHOUT_A_VERB, Crash, Operation
from tornpage.model.state import CommitLog
from tornpage.properties.campaign.coverage import Tally, armed_judges, fired_by_legal, fired_by_recovery
from tornpage.properties.campaign.replay import Failure
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.fingerprint import fingerprint
from tornpage.properties.disk.images import InFlightWrite, compose, in_flight_writes
from tornpage.properties.disk.journal import ProcessKilled
from tornpage.properties.disk.sampling import CHANCES, Chances, draw, enabled_faults, hit_faults
from tornpage.properties.judge.delay import delay_effects
from tornpage.properties.judge.evidence import LegalLogs, Recovered
from tornpage.properties.judge.ledgers import LegalVersions, versions_in
from tornpage.properties.judge.progress import being_saved, progress_effects
from tornpage.properties.judge.queues import MADE_GOOD, made_good
from tornpage.properties.lockstep.cache import Outcome, VerdictCache
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.lockstep.pair import Span
from tornpage.properties.program.case import Case
from tornpage.properties.program.log_places import LOG_PATHS, ROOT, log_files
from tornpage.properties.program.workload import mode_of

__all__ = ["CrashStates", "StateBroken"]


COUNTED_FILES_MIN = 2
COUNTED_RECORDS_MIN = 10


def counts(log: CommitLog, *, file_bytes: int) -> bool:
    """Whether a crash of this log is a state that counts; what is in a buffer of the pool is on no disk."""
    committed = sum(record.end_offset <= log.committed_offset for record in log.retained)
    in_files = log.committed_offset - log.min_offset
    return in_files > file_bytes * (COUNTED_FILES_MIN - 1) and committed >= COUNTED_RECORDS_MIN


class Place:
    """One event of a life, at which several crashes fall: what is the same for all of them is worked out once.

    `window` is the verb under way, `number` its place in the life, `back` how many events before its answer this one
    lies; `position` is where the journal ends that led to `state`.
    """

    def __init__(self, state: DiskState, number: int, window: Span, event: int, position: int) -> None:
        self.state = state
        self.number = number
        self.window = window
        self.event = event
        self.position = position

    @property
    def back(self) -> int:
        """How many events before the answer; 0 is at rest."""
        return self.window.last - self.event

    @cached_property
    def facts(self) -> list[InFlightWrite]:
        """What may or may not have reached the disk."""
        return in_flight_writes(self.state)

    @cached_property
    def armed(self) -> frozenset[str]:
        """The fault classes that these facts make possible."""
        return frozenset(enabled_faults(self.facts))


STATES_PER_EVENT = 3
LEGALITY_EVERY = 32
DISCOVERY_EVERY = 256
AGAIN_SHARE = 0.1
_UNCOUNTED_SHARE = 0.1
"""At how many of the events at which no state counts the power is lost all the same."""
_SMALL = ("checkpoint", "config/deletedTopics", "config/durableFloor", "config/derivedFloor")
_LEADING = (*LOG_PATHS, *(f"{ROOT}/{name}" for name in _SMALL))
"""What leads a recovery: where disks differ in something else alone, it does the same."""


class StateBroken(Exception):
    """Carries a failure out of the innermost state."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.broken))
        self.failure = failure


class CrashStates:
    """The crash states of one life: `done` are all operations of the history, those from `life_start` on are its own.

    Several lives share `rng` and `tally`.
    """

    def __init__(
        self,
        trial: Lockstep,
        done: Sequence[Operation],
        life_start: int,
        *,
        rng: random.Random,
        tally: Tally,
        chances: Chances = CHANCES,
    ) -> None:
        self._trial = trial
        self._settings = trial.settings
        self._done = tuple(done)
        self._life_start = life_start
        self._rng = rng
        self._tally = tally
        self._chances = chances
        self._legal: dict[tuple[bool, bool], LegalLogs] = {}
        self._verified: set[Hashable] = set()
        self._known = VerdictCache(random.Random(rng.random()), tally.work, tally.looked)

    def everywhere(self, *, share: float | None = None) -> Iterator[Failure | None]:
        """Crash at every event of the life; yield None after each state. Raises StateBroken for one that fails.

        With a `share` of events no state is counted, whatever the log holds.
        """
        trial = self._trial
        state = DiskState(trial.files.base, disk=self._settings.disk)
        applied = 0
        for number, window in enumerate(trial.spans):
            self._legal = {}
            counted = share is None and counts(window.after, file_bytes=self._settings.file_bytes)
            for event in range(window.first, window.last):
                position = trial.files.events[event]
                state.apply_all(trial.files.journal[applied:position])
                applied = position
                if counted or self._rng.random() < (_UNCOUNTED_SHARE if share is None else share):
                    place = Place(state, number, window, event, position)
                    for _ in range(STATES_PER_EVENT):
                        yield self._crash(place, counted=counted)
            if counted:
                yield self._crash(Place(state, number, window, window.last, applied), counted=counted)

    def _crash(self, place: Place, *, counted: bool) -> Failure | None:
        trial, tally, window, back = self._trial, self._tally, place.window, place.back
        started = perf_counter()
        kill = self._rng.random() < self._chances.kill
        goes_on = self._rng.random() < self._chances.crash_in_recovery
        again = self._rng.random() < AGAIN_SHARE  # drawn for each: what is known changes no draw
        image: Image | None = None
        if kill:
            crash = Crash(kill=True, back=back)
            armed, fired = {"kill"}, {"kill"}
        else:
            crash = Crash(back=back, survived=draw(place.facts, self._rng, self._chances))
            image = compose(place.state, crash.survived)
            if tally.all_states % LEGALITY_EVERY == 0:
                self._prove_legal(place.position, crash, image)
            armed, fired = set(place.armed), hit_faults(place.facts, crash.survived)
        legal = self._legal_at(window, at_rest=back == 0, kill=kill)
        versions = trial.recovery.versions_at(place.event)
        chosen = perf_counter()
        tally.seconds["choose"] += chosen - started
        try:
            found: Recovered | None
            if image is None:
                disk = trial.pair.new_disk if goes_on else trial.pair.last_disk
                files = disk(trial.files.base, (*trial.files.journal[: place.position], ProcessKilled()))
                found = trial.recovery.judged(files, legal, versions, cache=self._known)
                outcome = _outcome(found)
            else:
                outcome, found = self._outcome_of(image, legal, versions, goes_on=goes_on)
            mode, effects = {mode_of(self._settings)}, outcome.effects | being_saved(versions)
            armed |= {*MADE_GOOD, *effects, *mode}
            fired |= (effects - set(MADE_GOOD) if kill else effects) | mode
            self._count(outcome, legal, armed, fired, ceiling=len(window.after.records), counted=counted)
            if found is not None:
                self._again(found, drawn=again)
                if goes_on:
                    answered = window.at_power_loss(at_rest=back == 0) if kill else None
                    self._crash_in_recovery(found, answered, self._operations(place, crash), counted=counted)
                trial.environment.give_up(found.store)
        except GuaranteeBroken as broken:
            raise StateBroken(Failure(Case(self._settings, self._operations(place, crash)), broken)) from broken
        finally:
            tally.seconds["recover and judge"] += perf_counter() - chosen
        return None

    def _prove_legal(self, position: int, crash: Crash, image: Image) -> None:
        base, journal = self._trial.files.base, self._trial.files.journal
        assert_legal(base, journal, position, crash.survived, image, disk=self._settings.disk)
        self._tally.proven_legal += 1

    def _outcome_of(
        self, image: Image, legal: LegalLogs, versions: LegalVersions, *, goes_on: bool = False
    ) -> tuple[Outcome, Recovered | None]:
        """Recover and judge an image, unless what becomes of it is known; a store that `goes_on` is needed itself."""
        known, number = self._known, fingerprint(image.files, image.directories)
        self._tally.images.add(number)
        outcome = known.outcome(number, legal, versions)
        if outcome is not None and not goes_on:
            if not known.is_done_again():
                known.work["known"] += 1
                return outcome, None
            known.work["done_again"] += 1
        disk = self._trial.pair.new_disk if goes_on else self._trial.pair.last_disk
        found = self._trial.recovery.judged(disk(image), legal, versions, cache=known)
        return known.note(number, _outcome(found)), found

    def _legal_at(self, window: Span, *, at_rest: bool, kill: bool) -> LegalLogs:
        """Return the legal logs of the window under way; they are the same for all its states."""
        key = (at_rest, kill)
        if key not in self._legal:
            self._legal[key] = self._trial.recovery.legal_at(window, at_rest=at_rest, kill=kill)
        return self._legal[key]

    def _operations(self, place: Place, crash: Crash) -> tuple[Operation, ...]:
        """Return the operations up to a crash. Recoveries are all made at the end of the life: it says how much later.

        Span 0 of a life is its open; each later one is that of the operations which make a verb.
        """
        crash = replace(crash, later_ms=self._trial.environment.now_ms - place.window.now_ms)
        if not place.number:
            return (*self._done[: self._life_start], crash)
        verbs = [n for n in range(self._life_start, len(self._done)) if not isinstance(self._done[n], WITHOUT_A_VERB)]
        return (*self._done[: verbs[place.number - 1] + 1], crash)

    def _count(
        self,
        outcome: Outcome,
        legal: LegalLogs,
        armed: AbstractSet[str],
        fired: AbstractSet[str],
        *,
        ceiling: int,
        counted: bool,
    ) -> None:
        tally = self._tally
        tally.saw(armed_judges(self._settings), (*fired_by_legal(legal), *outcome.fired))
        tally.all_states += 1
        tally.states += counted
        if tally.all_states % DISCOVERY_EVERY == 0:
            tally.discovery.append((tally.all_states, len(tally.images), len(tally.recovered)))
        tally.armed.update(armed)
        tally.fired.update(fired)
        if outcome.key[0] < ceiling or outcome.findings:
            tally.mattered.update(fired)

    def _again(self, found: Recovered, *, drawn: bool) -> None:
        """Recover again what is new; of disks that differ in nothing that leads a recovery those that were `drawn`."""
        durable = found.durable.files
        self._tally.recovered.add(fingerprint({path: durable[path] for path in log_files(durable)}))
        legal, versions = self._trial.recovery.after_recovery(found)
        kept = {path: content for path, content in durable.items() if path.startswith(_LEADING)}
        disk = fingerprint(kept), found.key, tuple(sorted(versions.items()))
        if disk in self._verified and not drawn:
            return
        self._verified.add(disk)
        number = fingerprint(durable, found.durable.directories)
        outcome = self._known.outcome(number, legal, versions)
        if outcome is None or self._known.is_done_again():
            before = self._trial.coverage["delivered_after_recovery"]
            again = self._trial.recovery.recovers_again(found, cache=self._known)
            outcome = self._known.note(number, _outcome(again))
            self._trial.environment.give_up(again.store)
            delivered = self._trial.coverage["delivered_after_recovery"] - before
            for counter in (self._tally.armed, self._tally.fired, self._tally.mattered):
                counter["delivered_after_recovery"] += delivered
        self._tally.saw(armed_judges(self._settings), (*fired_by_legal(legal), *outcome.fired))

    def _crash_in_recovery(
        self, first: Recovered, answered: CommitLog | None, done: tuple[Operation, ...], *, counted: bool
    ) -> None:
        """Crash inside the recovery just done (contract 6). `answered` is the log of who was killed, None without.

        After a power loss all of the disk is durable and the same log must come back; after a kill the page cache is
        lost with the power, down to what had been flushed before, and so is what progress files said in it.
        """
        trial, files = self._trial, first.recording
        event = self._rng.randrange(len(files.events))
        position = files.events[event]
        state = DiskState(files.base, disk=self._settings.disk)
        state.apply_all(files.journal[:position])
        crash = Crash(back=len(files.events) - event, survived=draw(in_flight_writes(state), self._rng, self._chances))
        recovered = first.legal[first.key]
        legal = trial.recovery.legal_between(answered or recovered, recovered, kill=False)
        corrected = versions_in(first.durable.files, first.versions_before)
        versions = {path: frozenset((said, corrected[path])) for path, said in first.versions_before.items()}
        if answered is not None:
            versions = {path: said | first.legal_versions[path] for path, said in versions.items()}
        try:
            outcome, second = self._outcome_of(compose(state, crash.survived), legal, versions)
        except GuaranteeBroken as broken:
            raise StateBroken(Failure(Case(self._settings, (*done, crash)), broken)) from broken
        if second is not None:
            trial.environment.give_up(second.store)
        named = frozenset({"crash_in_recovery"})
        self._count(outcome, legal, named, named, ceiling=first.key[0] + 1, counted=counted)


def _outcome(found: Recovered) -> Outcome:
    """Return what became of an image, with what an activation table counts of it: effects and judges."""
    effects = frozenset(made_good(found) | progress_effects(found) | delay_effects(found))
    return Outcome.of(found, effects, fired_by_recovery(found))
