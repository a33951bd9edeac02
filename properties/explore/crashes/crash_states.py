"""Explore the crash states of one session: choose, compose, recover, judge.

Recovery uses the real load path. Each recovered store is recovered a second time. Work that was done before for the
same state of the run is not repeated, except for a random share that is compared (lockstep/cache.py, docs/adr/0024).
Of disks that differ only in queues and index, which every open verifies, or in remains of aborted saves, only a part
gets the second recovery.
"""

import random
from collections.abc import Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from time import perf_counter

from tornpage.model.operations import WITHOUT_A_VERB, Crash, Operation
from tornpage.model.state import CommitLog
from tornpage.properties.campaign.coverage import Tally, enabled_judges, hit_by_legal, hit_by_recovery
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
    """Return whether a crash of this log counts as a state.

    Bytes in a buffer of the pool are not on disk.
    """
    committed = sum(record.end_offset <= log.committed_offset for record in log.retained)
    in_files = log.committed_offset - log.min_offset
    return in_files > file_bytes * (COUNTED_FILES_MIN - 1) and committed >= COUNTED_RECORDS_MIN


class CrashPoint:
    """Hold one crash point, at which several crashes happen; shared values are computed once.

    `span` is the span of the running operation, `number` its place in the session, and `back` the number of events
    from here to its answer. `position` is the end of the journal that led to `state`.
    """

    def __init__(self, state: DiskState, number: int, span: Span, event: int, position: int) -> None:
        self.state = state
        self.number = number
        self.span = span
        self.event = event
        self.position = position

    @property
    def back(self) -> int:
        """Return the number of events before the answer; 0 is at rest."""
        return self.span.last - self.event

    @cached_property
    def facts(self) -> list[InFlightWrite]:
        """Return the in-flight writes, which may or may not have reached the disk."""
        return in_flight_writes(self.state)

    @cached_property
    def enabled(self) -> frozenset[str]:
        """Return the fault classes that these in-flight writes make possible."""
        return frozenset(enabled_faults(self.facts))


STATES_PER_EVENT = 3
LEGALITY_EVERY = 32
DISCOVERY_EVERY = 256
AGAIN_SHARE = 0.1
_UNCOUNTED_SHARE = 0.1
"""Share of the events without counted states at which the power is lost all the same."""
_AT_REST_SHARE = 0.2
"""Share of the operations that are crashed after their answer, at least."""
_SMALL = ("checkpoint", "config/deletedTopics", "config/durableFloor", "config/derivedFloor")
_LEADING = (*LOG_PATHS, *(f"{ROOT}/{name}" for name in _SMALL))
"""The files that decide a recovery. Where disks differ only in other files, recovery does the same."""


class StateBroken(Exception):
    """Carry a failure out of the innermost state."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.broken))
        self.failure = failure


class CrashStates:
    """Explore the crash states of one session.

    `done` are all operations of the run; those from `session_start` on belong to this session. Several sessions share
    `rng` and `tally`.
    """

    def __init__(
        self,
        trial: Lockstep,
        done: Sequence[Operation],
        session_start: int,
        *,
        rng: random.Random,
        tally: Tally,
        chances: Chances = CHANCES,
    ) -> None:
        self._trial = trial
        self._settings = trial.settings
        self._done = tuple(done)
        self._session_start = session_start
        self._rng = rng
        self._tally = tally
        self._chances = chances
        self._legal: dict[tuple[bool, bool], LegalLogs] = {}
        self._verified: set[Hashable] = set()
        self._known = VerdictCache(random.Random(rng.random()), tally.work, tally.evaluations)

    def everywhere(self, *, states_max: int = 1 << 62, share: float | None = None) -> Iterator[Failure | None]:
        """Crash at drawn events of the session, or at all; yield None after each state.

        So many events are drawn that about `states_max` states count. Raises StateBroken if one fails. With a `share`
        of events no state is counted, whatever the log holds.
        """
        trial = self._trial
        counted_share, other_share = self._shares(states_max)
        chosen = random.Random(self._rng.random())
        state = DiskState(trial.files.base, disk=self._settings.disk)
        applied = 0
        for number, span in enumerate(trial.spans):
            self._legal = {}
            counted = share is None and counts(span.after, file_bytes=self._settings.file_bytes)
            for event in range(span.first, span.last):
                position = trial.files.events[event]
                state.apply_all(trial.files.journal[applied:position])
                applied = position
                if chosen.random() < (counted_share if counted else other_share if share is None else share):
                    place = CrashPoint(state, number, span, event, position)
                    for _ in range(STATES_PER_EVENT):
                        yield self._crash_at(place, counted=counted)
            if counted and chosen.random() < max(counted_share, _AT_REST_SHARE):
                yield self._crash_at(CrashPoint(state, number, span, span.last, applied), counted=counted)

    def _shares(self, states_max: int) -> tuple[float, float]:
        """Return the shares of events to crash at: where states count, and elsewhere."""
        events = [0, 0]
        for span in self._trial.spans:
            is_counted = counts(span.after, file_bytes=self._settings.file_bytes)
            events[is_counted] += span.last - span.first
        most = states_max / STATES_PER_EVENT
        return min(1.0, most / max(1, events[True])), min(_UNCOUNTED_SHARE, most / 2 / max(1, events[False]))

    def _crash_at(self, place: CrashPoint, *, counted: bool) -> Failure | None:
        """Crash with the wall clock of the operation, as a replay does."""
        with self._trial.environment.before_clock_steps(place.span.clock_ahead_ms):
            return self._crash(place, counted=counted)

    def _crash(self, place: CrashPoint, *, counted: bool) -> Failure | None:
        trial, tally, span, back = self._trial, self._tally, place.span, place.back
        started = perf_counter()
        kill = self._rng.random() < self._chances.kill
        goes_on = self._rng.random() < self._chances.crash_in_recovery
        again = self._rng.random() < AGAIN_SHARE  # drawn every time, so that the cache does not change later draws
        image: Image | None = None
        if kill:
            crash = Crash(kill=True, back=back)
            enabled, hit = {"kill"}, {"kill"}
        else:
            crash = Crash(back=back, survived=draw(place.facts, self._rng, self._chances))
            image = compose(place.state, crash.survived)
            if tally.all_states % LEGALITY_EVERY == 0:
                self._prove_legal(place.position, crash, image)
            enabled, hit = set(place.enabled), hit_faults(place.facts, crash.survived)
        legal = self._legal_at(span, at_rest=back == 0, kill=kill)
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
            enabled |= {*MADE_GOOD, *effects, *mode}
            hit |= (effects - set(MADE_GOOD) if kill else effects) | mode
            self._count(outcome, legal, enabled, hit, ceiling=len(span.after.records), counted=counted)
            if found is not None:
                self._again(found, drawn=again)
                if goes_on:
                    answered = span.at_power_loss(at_rest=back == 0) if kill else None
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
        """Recover and judge an image unless its outcome is known.

        A store that `goes_on` is always needed itself.
        """
        known, image_number = self._known, fingerprint(image.files, image.directories)
        self._tally.images.add(image_number)
        number = self._at_this_clock(image_number)
        outcome = known.outcome(number, legal, versions)
        if outcome is not None and not goes_on:
            if not known.is_done_again():
                known.work["known"] += 1
                return outcome, None
            known.work["done_again"] += 1
        disk = self._trial.pair.new_disk if goes_on else self._trial.pair.last_disk
        found = self._trial.recovery.judged(disk(image), legal, versions, cache=known)
        return known.note(number, _outcome(found)), found

    def _at_this_clock(self, image: bytes) -> bytes:
        """Return the key of the verdict on an image: a recovery also depends on the wall clock."""
        environment = self._trial.environment
        return b"%b %d %d" % (image, environment.clock_ahead_ms, environment.set_forward_ms)

    def _legal_at(self, span: Span, *, at_rest: bool, kill: bool) -> LegalLogs:
        """Return the legal logs of the running operation, which all its states share."""
        key = (at_rest, kill)
        if key not in self._legal:
            self._legal[key] = self._trial.recovery.legal_at(span, at_rest=at_rest, kill=kill)
        return self._legal[key]

    def _operations(self, place: CrashPoint, crash: Crash) -> tuple[Operation, ...]:
        """Return the operations up to a crash.

        Every recovery happens at the end of the session, so the crash records how much later that is. It happens
        without the I/O fault rule of the session. Span 0 of a session is its open. Each later span belongs to an
        operation that calls the store.
        """
        later_ms = self._trial.environment.now_ms - place.span.now_ms
        crash = replace(crash, later_ms=later_ms, fault_ends=bool(self._trial.files.rules))
        if not place.number:
            return (*self._done[: self._session_start], crash)
        verbs = [
            n for n in range(self._session_start, len(self._done)) if not isinstance(self._done[n], WITHOUT_A_VERB)
        ]
        return (*self._done[: verbs[place.number - 1] + 1], crash)

    def _count(
        self,
        outcome: Outcome,
        legal: LegalLogs,
        enabled: AbstractSet[str],
        hit: AbstractSet[str],
        *,
        ceiling: int,
        counted: bool,
    ) -> None:
        tally = self._tally
        tally.count_judges(enabled_judges(self._settings), (*hit_by_legal(legal), *outcome.fired))
        tally.all_states += 1
        tally.states += counted
        if tally.all_states % DISCOVERY_EVERY == 0:
            tally.discovery.append((tally.all_states, len(tally.images), len(tally.recovered)))
        tally.enabled.update(enabled)
        tally.hit.update(hit)
        if outcome.key[0] < ceiling or outcome.findings:
            tally.effective.update(hit)

    def _again(self, found: Recovered, *, drawn: bool) -> None:
        """Recover a store again if its disk is new or was `drawn`.

        Disks count as equal if they agree in every file that decides a recovery.
        """
        durable = found.durable.files
        self._tally.recovered.add(fingerprint({path: durable[path] for path in log_files(durable)}))
        legal, versions = self._trial.recovery.after_recovery(found)
        kept = {path: content for path, content in durable.items() if path.startswith(_LEADING)}
        disk = self._at_this_clock(fingerprint(kept)), found.key, tuple(sorted(versions.items()))
        is_new = disk not in self._verified
        if not is_new and not drawn:
            return
        self._verified.add(disk)
        number = self._at_this_clock(fingerprint(durable, found.durable.directories))
        outcome = self._known.outcome(number, legal, versions)
        if outcome is None or self._known.is_done_again():
            before = self._trial.coverage["delivered_after_recovery"]
            again = self._trial.recovery.recovers_again(found, cache=self._known)
            outcome = self._known.note(number, _outcome(again))
            self._trial.environment.give_up(again.store)
            delivered = self._trial.coverage["delivered_after_recovery"] - before
            for counter in (self._tally.enabled, self._tally.hit, self._tally.effective):
                counter["delivered_after_recovery"] += delivered
        if is_new:  # a drawn repetition happens only for images without a cached verdict, and must not change counts
            self._tally.count_judges(enabled_judges(self._settings), (*hit_by_legal(legal), *outcome.fired))

    def _crash_in_recovery(
        self, first: Recovered, answered: CommitLog | None, done: tuple[Operation, ...], *, counted: bool
    ) -> None:
        """Crash inside the recovery just done (contract 6).

        `answered` is the log as acknowledged by a killed process, or None without a kill. After a power loss the whole
        disk is durable, and the same log must come back. After a kill the page cache is lost with the power: only what
        was flushed before survives, also of progress files.
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
    """Return the outcome of an image, with its coverage points and judges."""
    effects = frozenset(made_good(found) | progress_effects(found) | delay_effects(found))
    return Outcome.of(found, effects, hit_by_recovery(found))
