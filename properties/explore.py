"""Seeded random crash campaigns without Hypothesis: record a history, then crash it at every event.

One seed is one history of a few lives; after each life every event is revisited and crash states are drawn there. A
state is chosen, composed, recovered by the store's real load path, looked at by every judge, and recovered again. The
second recovery of a disk that was verified before, byte for byte, is not repeated: it is a function of the disk. Where
only queues and index differ, which are proved anew at each open, a part of them is.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, get_args

from model.state import CommitLog
from properties.case import (
    WITHOUT_A_VERB,
    Case,
    CommitOffset,
    Crash,
    Damage,
    DamageKind,
    DerivedFile,
    DerivedHarm,
    Flush,
    HarmDerived,
    HarmProgress,
    Open,
    OpenTwice,
    Operation,
    ProgressHarm,
    Put,
    Settings,
    Step,
)
from properties.certificate import assert_legal
from properties.delay_judges import delay_effects
from properties.images import compose, facts_of
from properties.judges import JUDGES, LegalLogs, Recovered
from properties.log_places import log_files
from properties.progress_judges import progress_effects
from properties.progress_ledger import said_by
from properties.queue_judges import MADE_GOOD, is_derived, made_good
from properties.recorder.dirty import DirtyTracker
from properties.recorder.disk import DiskState, Image
from properties.recorder.journal import ProcessKilled
from properties.replay import Failure
from properties.sampling import armed_faults, draw, fired_faults
from properties.tally import Tally, fingerprint
from properties.trial import Trial, Window
from properties.verdict import GuaranteeBroken
from properties.workload import draw_operation, draw_settings, mode_of

__all__ = ["Tally", "explore_seed", "fingerprint"]

COUNTED_FILES_MIN = 2
COUNTED_RECORDS_MIN = 10
STATES_PER_EVENT = 3
KILL_SHARE = 0.04
RECOVERY_CRASH_SHARE = 0.08
LEGALITY_EVERY = 32
DISCOVERY_EVERY = 256
AGAIN_SHARE = 0.15
DAMAGES: tuple[DamageKind, ...] = get_args(DamageKind)
HARMS: tuple[DerivedHarm, ...] = get_args(DerivedHarm)
HARMED: tuple[DerivedFile, ...] = get_args(DerivedFile)
_PROGRESS_EFFECTS = {
    "progress_recovered": "progress_saved",
    "progress_crashed_in_save": "progress_being_saved",
    "progress_corrected": "progress_corrected",
}
"""What a trial counts of a disaster, and what a campaign calls it."""
PROGRESS_HARMS: tuple[ProgressHarm, ...] = get_args(ProgressHarm)


def _counts(log: CommitLog, *, file_bytes: int) -> bool:
    """Whether a crash of this log is a state that counts; what is in a buffer of the pool is on no disk."""
    committed = sum(record.end_offset <= log.committed_offset for record in log.retained)
    in_files = log.committed_offset - log.min_offset
    return in_files > file_bytes * (COUNTED_FILES_MIN - 1) and committed >= COUNTED_RECORDS_MIN


def explore_seed(
    seed: str,
    base: Settings,
    *,
    tracker: DirtyTracker,
    tally: Tally,
    fixed: Mapping[str, Any] | None = None,
    clock_back_ms: int = 0,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Failure | None]:
    """Run one history and its crash states; yield None after each state, or the failure that ends the history.

    Settings that are `fixed` are not drawn. The clock is set back once in each life if `clock_back_ms` says so. Once
    `is_over` no more crash states follow, only the disasters that end each history.
    """
    rng = random.Random(f"explore {seed}")
    settings = replace(draw_settings(base, rng), **(fixed or {}))
    history = _History(settings, rng, tracker=tracker, tally=tally, clock_back_ms=clock_back_ms)
    tally.histories += 1
    yield from history.run(is_over)


class _History:
    """One seed."""

    def __init__(
        self, settings: Settings, rng: random.Random, *, tracker: DirtyTracker, tally: Tally, clock_back_ms: int
    ) -> None:
        self._settings = settings
        self._clock_back_ms = clock_back_ms
        self._rng = rng
        self._tally = tally
        self._tracker = tracker
        self._done: list[Operation] = []
        self._life_start = 0
        self._legal: dict[tuple[bool, bool], LegalLogs] = {}

    def run(self, is_over: Callable[[], bool]) -> Iterator[Failure | None]:
        try:
            self._trial = Trial(self._settings, tracker=self._tracker)
            for life in range(1 + self._rng.randrange(3)):
                self._live(40 if life == 0 else 10)
                for failure in self._crash_everywhere():
                    yield failure
                    if is_over():
                        break
                self._end_in_a_save()
                if is_over():
                    break
            if not self._trial.log.poisoned:
                for harm in HARMS:
                    self._harm(harm)
                    yield None
                for lost in PROGRESS_HARMS:
                    self._harm_progress(lost)
                    yield None
                for kind in DAMAGES:
                    self._damage(kind)
                    yield None
        except GuaranteeBroken as broken:
            yield Failure(Case(self._settings, tuple(self._done)), broken)
        except _StateBroken as failed:
            yield failed.failure

    def _carry_out(self, operation: Operation) -> None:
        self._done.append(operation)
        started = perf_counter()
        self._trial.run(operation)
        self._tally.seconds["history"] += perf_counter() - started
        if isinstance(operation, Open):
            self._life_start = len(self._done)  # the windows begin anew

    def _live(self, operations: int) -> None:
        self._life_start = len(self._done)
        for number in range(operations + self._rng.randrange(operations // 2)):
            trial = self._trial
            if number == operations // 3 and self._clock_back_ms and not trial.closed:
                self._set_clock_back()
            operation = draw_operation(self._rng, closed=trial.closed, services=trial.services, deletes=True)
            self._carry_out(operation)
        if not self._trial.closed and not self._trial.log.poisoned:
            self._save_progress()
        self._carry_out(OpenTwice())

    def _save_progress(self) -> None:
        """Have a group read what was put last, durable or not, and note that, durably."""
        self._carry_out(Step(service="reput"))
        self._carry_out(CommitOffset(queue=self._rng.randrange(8)))
        self._carry_out(Step(service="progress", after_ms=5_000))

    def _set_clock_back(self) -> None:
        """Have everything durable, and the checkpoint say so; then the clock is not what it was."""
        self._carry_out(Flush())
        self._carry_out(Step(service="reput"))
        self._carry_out(Step(service="flush-queues", after_ms=60_000))
        self._carry_out(Put(advance_ms=-self._clock_back_ms))

    # ---- crash states --------------------------------------------------------------------------------------------

    def _crash_everywhere(self) -> Iterator[Failure | None]:
        trial = self._trial
        state = DiskState(trial.files.base, disk=self._settings.disk)
        applied = 0
        for number, window in enumerate(trial.windows):
            self._legal = {}
            counted = _counts(window.after, file_bytes=self._settings.file_bytes)
            for event in range(window.first, window.last):
                position = trial.files.events[event]
                state.apply_all(trial.files.journal[applied:position])
                applied = position
                if counted or self._rng.random() < 0.1:
                    for _ in range(STATES_PER_EVENT):
                        yield self._crash(state, number, window, window.last - event, position, counted=counted)
            if counted:
                yield self._crash(state, number, window, 0, applied, counted=counted)

    def _crash(
        self, state: DiskState, number: int, window: Window, back: int, position: int, *, counted: bool
    ) -> Failure | None:
        trial, tally = self._trial, self._tally
        started = perf_counter()
        kill = self._rng.random() < KILL_SHARE
        goes_on = self._rng.random() < RECOVERY_CRASH_SHARE
        disk = trial.new_disk if goes_on else trial.last_disk
        if kill:
            crash = Crash(kill=True, back=back)
            files = disk(trial.files.base, (*trial.files.journal[:position], ProcessKilled()))
            armed, fired = {"kill"}, {"kill"}
        else:
            facts = facts_of(state)
            crash = Crash(back=back, survived=draw(facts, self._rng))
            image = compose(state, crash.survived)
            tally.images.add(fingerprint(image))
            if tally.all_states % LEGALITY_EVERY == 0:
                assert_legal(
                    trial.files.base,
                    trial.files.journal,
                    position,
                    crash.survived,
                    image,
                    disk=self._settings.disk,
                )
                tally.proven_legal += 1
            files = disk(image)
            armed, fired = armed_faults(facts), fired_faults(facts, dict(crash.survived))
        legal = self._legal_at(window, at_rest=back == 0, kill=kill)
        chosen = perf_counter()
        tally.seconds["choose"] += chosen - started
        done = self._done[: self._operations_until(number)]
        try:
            found = trial.judged(files, legal, trial.versions.legal_versions(window.last - back))
            mode = {mode_of(self._settings)}
            armed |= set(MADE_GOOD)
            fired |= set() if kill else made_good(found)
            armed |= (effects := progress_effects(found) | delay_effects(found))
            fired |= effects
            self._count(found, armed | mode, fired | mode, ceiling=len(window.after.records), counted=counted)
            self._again(found)
            if goes_on:
                answered = window.at(at_rest=back == 0) if kill else found.legal[found.key]
                self._crash_in_recovery(found, answered, (*done, crash), counted=counted)
        except GuaranteeBroken as broken:
            raise _StateBroken(Failure(Case(self._settings, (*done, crash)), broken)) from broken
        finally:
            tally.seconds["recover and judge"] += perf_counter() - chosen
        return None

    def _legal_at(self, window: Window, *, at_rest: bool, kill: bool) -> LegalLogs:
        """Return the legal logs of the window under way; they are the same for all its states."""
        key = (at_rest, kill)
        if key not in self._legal:
            self._legal[key] = self._trial.legal_at(window, at_rest=at_rest, kill=kill)
        return self._legal[key]

    def _operations_until(self, window_number: int) -> int:
        """Window 0 of a life is its open; each later one is that of the operations which make a verb."""
        verbs = [n for n in range(self._life_start, len(self._done)) if not isinstance(self._done[n], WITHOUT_A_VERB)]
        return verbs[window_number - 1] + 1 if window_number else self._life_start

    def _count(self, found: Recovered, armed: set[str], fired: set[str], *, ceiling: int, counted: bool) -> None:
        tally = self._tally
        tally.all_states += 1
        tally.states += counted
        if tally.all_states % DISCOVERY_EVERY == 0:
            tally.discovery.append((tally.all_states, len(tally.images), len(tally.recovered)))
        tally.armed.update(armed)
        tally.fired.update(fired)
        if found.key[0] < ceiling or found.store.findings:
            tally.mattered.update(fired)
        tally.judged.update(judge.__name__ for judge in JUDGES)

    def _again(self, found: Recovered) -> None:
        """Recover again what is new; of disks that differ in queues and index alone a part, drawn."""
        drawn = self._rng.random() < AGAIN_SHARE
        kept = {path: content for path, content in found.durable.files.items() if not is_derived(path)}
        logs = {path: found.durable.files[path] for path in log_files(found.durable.files)}
        self._tally.recovered.add(fingerprint(Image(frozenset(), logs)))
        key = fingerprint(Image(frozenset(), kept)) + repr(found.key).encode()
        if drawn or key not in self._tally.verified:
            before = self._trial.effects["delivered_after_recovery"]
            self._trial.recovers_again(found)
            self._tally.verified.add(key)
            delivered = self._trial.effects["delivered_after_recovery"] - before
            for counter in (self._tally.armed, self._tally.fired, self._tally.mattered):
                counter["delivered_after_recovery"] += delivered

    def _crash_in_recovery(
        self, first: Recovered, answered: CommitLog, done: tuple[Operation, ...], *, counted: bool
    ) -> None:
        """Crash inside the recovery just done (contract 6).

        After a power loss all of the disk is durable and the same log must come back; after a kill the page cache is
        lost with the power, down to what had been flushed before.
        """
        trial, files = self._trial, first.files
        event = self._rng.randrange(len(files.events))
        position = files.events[event]
        state = DiskState(files.base, disk=self._settings.disk)
        state.apply_all(files.journal[:position])
        crash = Crash(back=len(files.events) - event, survived=draw(facts_of(state), self._rng))
        legal = trial.legal_between(answered, first.legal[first.key], kill=False)
        corrected = said_by(first.durable.files, first.said_before)
        versions = {path: frozenset((said, corrected[path])) for path, said in first.said_before.items()}
        try:
            found = trial.judged(trial.last_disk(compose(state, crash.survived)), legal, versions)
        except GuaranteeBroken as broken:
            raise _StateBroken(Failure(Case(self._settings, (*done, crash)), broken)) from broken
        self._count(found, {"crash_in_recovery"}, {"crash_in_recovery"}, ceiling=first.key[0] + 1, counted=counted)

    # ---- ends of a life ------------------------------------------------------------------------------------------

    def _end_in_a_save(self) -> None:
        """End a life with a disaster, at rest or inside of a save of progress."""
        if self._trial.closed or self._trial.log.poisoned:
            self._carry_out(Open())
        self._save_progress()
        before = self._trial.effects.copy()
        self._carry_out(self._closing_disaster())
        happened = self._trial.effects - before
        for effect, fault in _PROGRESS_EFFECTS.items():
            if happened[effect]:
                for counter in (self._tally.armed, self._tally.fired, self._tally.mattered):
                    counter[fault] += happened[effect]

    def _closing_disaster(self) -> Operation:
        """Draw the disaster that leads to the next life: at rest or inside the last verb."""
        trial = self._trial
        window = trial.windows[-1]
        back = self._rng.randrange(window.last - window.first + 1)
        position = trial.files.events[window.last - back] if back else len(trial.files.journal)
        if self._rng.random() < 0.3:
            return Crash(kill=True, back=back)
        state = DiskState(trial.files.base, disk=self._settings.disk)
        state.apply_all(trial.files.journal[:position])
        return Crash(back=back, survived=draw(facts_of(state), self._rng))

    def _harm(self, harm: DerivedHarm) -> None:
        """Harm files in turn, until one was not what it was before."""
        tally, number = self._tally, self._rng.randrange(64)
        tally.armed[f"derived_{harm}"] += 1
        for file in self._rng.sample(HARMED, len(HARMED)):
            before = self._trial.effects[f"{file}_{harm}"]
            self._carry_out(HarmDerived(file, harm, number=number, amount=self._rng.randrange(1 << 12)))
            if self._trial.effects[f"{file}_{harm}"] > before:
                tally.fired[f"derived_{harm}"] += 1
                tally.mattered[f"derived_{harm}"] += 1
                break

    def _harm_progress(self, harm: ProgressHarm) -> None:
        before = self._trial.effects[f"progress_file_{harm}"]
        self._carry_out(CommitOffset(queue=self._rng.randrange(8)))
        self._carry_out(HarmProgress(harm))
        self._tally.armed[f"progress_file_{harm}"] += 1
        if self._trial.effects[f"progress_file_{harm}"] > before:
            self._tally.fired[f"progress_file_{harm}"] += 1
            self._tally.mattered[f"progress_file_{harm}"] += 1

    def _damage(self, kind: DamageKind) -> None:
        damage = Damage(kind=kind, record=self._rng.randrange(1 << 10), amount=self._rng.randrange(1 << 20))
        self._carry_out(damage)
        for counter in (self._tally.armed, self._tally.fired, self._tally.mattered):
            counter[kind] += 1


class _StateBroken(Exception):
    """Carries a failure out of the innermost state."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure.broken))
        self.failure = failure
