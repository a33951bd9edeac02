"""Run a crash campaign on a foreign store with random programs and crash states.

A run is one store in up to three sessions of a few operations. Some crash states of each session are made: a power loss
or a kill at any point of any operation. Each is opened by a process, judged, and continued for an operation or two.
Then the run itself is crashed and continues. If the process cannot be traced, the only crashes are kills of the run
itself after an answer.

Runs are the parts of a campaign (properties/campaign/engine.py), carried out in this process one after the other. A
campaign without findings must have caught a canary and must have had un-synced data to lose. Otherwise its verdict is
vacuous.
"""

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Literal

from tornpage.model.operations import Call, Close, Crash, Flush, Open, Operation
from tornpage.properties.campaign.engine import (
    Budget,
    CanaryTime,
    Progress,
    explore,
    ignored,
    shrink_case,
    shrink_found,
)
from tornpage.properties.campaign.replay import Failure, replay, replay_several, signature
from tornpage.properties.campaign.result import CampaignResult, Found
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Interrupted, Launcher
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.disk.images import disk_state, in_flight_writes
from tornpage.properties.disk.sampling import Chances, draw, enabled_faults, hit_faults
from tornpage.properties.foreign.shapes.registry import MESSAGES, SHAPES
from tornpage.properties.foreign.shapes.shape import Run
from tornpage.properties.foreign.trial import TargetTrial, is_in_first_open
from tornpage.properties.foreign.work_area import ProcessPool
from tornpage.properties.foreign.zygote import zygotes
from tornpage.properties.program.case import Case, Settings

__all__ = [
    "FAILURES_MAX",
    "OVERLAPPING_TRIES",
    "SHRINK_SECONDS",
    "TRIES",
    "Start",
    "TargetPart",
    "TargetPartRun",
    "TargetPlan",
    "TargetProgress",
    "TargetResult",
    "TargetTally",
    "run_target_campaign",
    "run_target_part",
    "sum_of_parts",
]

SHRINK_SECONDS = 60.0
"""Seconds allowed to shrink one failure. Each try is a program with processes of its own."""
_BUDGET = Budget(2_000, SHRINK_SECONDS)
FAILURES_MAX = 3
TRIES = 5
"""Replays of a failure before it counts as one that does not show again."""
OVERLAPPING_TRIES = 20
"""Replays of a failure of overlapping calls."""
_SESSIONS = (1, 1, 2, 3)
"""Some states appear only in the first session, such as files whose names are not yet durable. They should be drawn
often."""
_CHANCES = Chances(nothing=0.15, all_but_one=0.4, older=0.5)
"""A small store has few in-flight writes, so more of them are lost."""
_STATES_PER_LIFE = 6
_OWN_PROCESS_EVERY = 8
"""Every so many runs the sessions have processes of their own, also with reuse.

Only after a kill is the whole directory compared with the recording.
"""
_KILL_SHARE = 0.3
_SECOND_LOSS_SHARE = 0.5
"""The share of crash states after which the power is lost once more. What was recovered must be as safe as promised."""
_LOSSY_SHARE = 0.7
"""The share of crash states at points with un-synced data, as long as there are such points."""

Start = Literal["open", "first-answer"]
"""Where crashes begin: anywhere, or after the answer of the very first open."""

CrashPoint = tuple[int, int]
"""The number of the operation, and the events before its answer; 0 is at rest after it."""


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """Plan a campaign.

    It ends at the limit of crash states, of seconds, or of different failures. A failure after a crash inside the very
    first open is kept once and does not count against that limit. With `start` "first-answer" no crash is inside the
    very first open. With `reuse` a process opens several directories, if its store offers that.
    """

    settings: Settings
    seed: int = 0
    states: int | None = None
    seconds: float | None = None
    failures_max: int = FAILURES_MAX
    start: Start = "open"
    reuse: bool = True


@dataclass
class TargetTally:
    """Count what was run.

    `enabled`, `hit` and `effective` count crash faults, disk faults and operations by name. `without_power` counts the
    states for which no power loss could be made, by reason. `reused_only` counts failures that a process with one
    directory does not show; after the first, no process opens a second one.
    `kills_only` says that the disk loses nothing, or that the store promises nothing after a power loss, so that no
    power loss is asked for. `shape` is the shape of the store, empty before the first run.
    """

    enabled: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)
    effective: Counter[str] = field(default_factory=Counter)
    states: int = 0
    histories: int = 0
    without_power: Counter[str] = field(default_factory=Counter)
    reused_only: int = 0
    kills_only: bool = False
    shape: str = ""

    def add(self, other: "TargetTally") -> None:
        """Add the counts of a run."""
        self.enabled += other.enabled
        self.hit += other.hit
        self.effective += other.effective
        self.states += other.states
        self.histories += other.histories
        self.kills_only = self.kills_only or other.kills_only
        self.shape = self.shape or other.shape
        self.without_power += other.without_power
        self.reused_only += other.reused_only

    @property
    def left_out(self) -> str:
        """Return why no power loss was made, or an empty string if there was one."""
        return "" if self.hit["power"] or not self.without_power else self.without_power.most_common(1)[0][0]

    @property
    def silent(self) -> list[str]:
        """Return what has not happened and is needed for a verdict."""
        write = SHAPES[self.shape or MESSAGES].write
        needed = [write, "close", "open", "kill", *([] if self.kills_only else ["power", "lost"])]
        return [name for name in needed if not self.hit[name]]

    def lines(self) -> list[str]:
        """Return the counts, one per line."""
        kinds = {"armed": self.enabled, "fired": self.hit, "mattered": self.effective}
        counts = [f"{kind} {name} {number}" for kind, each in kinds.items() for name, number in sorted(each.items())]
        apart = [f"without power {number} {reason}" for reason, number in sorted(self.without_power.items())]
        return [f"states {self.states}", f"histories {self.histories}", *counts, *apart]


TargetResult = CampaignResult[TargetTally, Failure]
"""The result of a campaign on a foreign store."""


@zygotes()
def run_target_campaign(plan: TargetPlan, *, tracker: DirtyTracker, progress: Progress = ignored) -> TargetResult:
    """Run a campaign.

    An interrupt ends it and keeps its results. Raises HarnessError if a failure does not show again.
    """
    result = explore(_Explorer(plan, tracker), seconds=plan.seconds, progress=progress)
    if result.faults:
        raise HarnessError(result.faults[0])
    return result


TakeRun = Callable[[int, TargetTally, "list[Failure]"], None]
"""Called with the number of a run that has ended, its tally and its failures."""


def _unheeded(number: int, tally: TargetTally, failures: list[Failure]) -> None:
    """Do nothing with a run."""


@dataclass(frozen=True, slots=True)
class TargetProgress:
    """Hold what a part has done so far, which is its result.

    Everything on which its next run depends follows from it. `tally` sums up its runs. `canary` is the one that it
    caught before its first run. `found` has its failures as found, in the order in which they were first met.
    """

    tally: TargetTally = field(default_factory=TargetTally)
    canary: str = ""
    found: "tuple[Found[Failure], ...]" = ()

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return self.tally.histories

    @property
    def states(self) -> int:
        """Return the number of crash states."""
        return self.tally.states

    @property
    def known(self) -> frozenset[tuple[int, str]]:
        """Return the failures that count against the limit."""
        return frozenset(signature(each.failure.broken) for each in self.found if not self._is_first_open(each))

    @property
    def met_first_open(self) -> bool:
        """Return whether a crash inside the very first open has failed."""
        return any(map(self._is_first_open, self.found))

    @property
    def result_hash(self) -> str:
        """Return the hash of the result, in hexadecimal digits."""
        return _hash_of(self.tally, self.found)

    def after(self, result: TargetResult) -> "TargetProgress":
        """Return the progress after a turn that has added its runs to the tally of this one."""
        found = {_key(each.failure): each for each in self.found}
        for each in result.found:
            key, failure = _key(each.failure), Failure(each.failure.case, each.failure.broken)
            known = found.get(key)
            found[key] = Found(failure, times=each.times) if known is None else _met_again(known, each.times)
        return TargetProgress(result.tally, result.canary, tuple(found.values()))

    @staticmethod
    def _is_first_open(found: "Found[Failure]") -> bool:
        return is_in_first_open(found.failure.case)


@dataclass(frozen=True, slots=True)
class TargetPartRun:
    """Hold the progress of a part after a turn, and whether another turn follows.

    `interrupted` means that an interrupt ended the turn inside a run.
    """

    progress: TargetProgress
    paused: bool
    interrupted: bool


@zygotes()
def run_target_part(
    plan: TargetPlan,
    *,
    first: int,
    tracker: DirtyTracker,
    each: TakeRun = _unheeded,
    before: TargetProgress | None = None,
    is_paused: Callable[[], bool] = lambda: False,
) -> TargetPartRun:
    """Carry out the runs of a part, numbered from `first` on, or one turn of it.

    The turn continues after the progress `before`. It ends after at least one run once `is_paused` is true, which is
    asked after each run but the last. Failures are kept as found, without shrinking. The result of all turns together
    does not depend on where a turn ended.
    """
    before = before or TargetProgress()
    explorer = _Explorer(plan, tracker, first=first, each=each, shrinks=False, before=before, is_paused=is_paused)
    result = explore(explorer)
    return TargetPartRun(before.after(result), explorer.paused, result.interrupted)


@dataclass(frozen=True, slots=True)
class TargetPart:
    """Hold the result of one part of a campaign.

    `failures` come with the number of runs that met them.
    """

    number: int
    tally: TargetTally
    canary: str
    failures: "Sequence[tuple[Failure, int]]"


@zygotes()
def sum_of_parts(
    plan: TargetPlan, parts: Iterable[TargetPart], *, tracker: DirtyTracker, is_cut: bool = False
) -> TargetResult:
    """Return the result of a campaign from its parts, with shrunk failures unless it `is_cut`.

    A part needs a canary if no part has a failure. A failure that does not show again is a fault of the harness.
    """
    explorer = _Explorer(plan, tracker)
    result: TargetResult = CampaignResult(explorer.tally())
    for part in parts:
        result.shards += 1
        result.tally.add(part.tally)
        for failure, times in part.failures:
            for _ in range(times):
                result.meet(_key(failure), failure)
        if not part.canary:
            result.without_canary.append(part.number)
        result.canary = result.canary or part.canary
    explorer.conclude(result)
    result.interrupted = result.is_cut = is_cut
    shrink_found(explorer, result)
    return result


@dataclass(frozen=True, slots=True)
class _RunPlan:
    """Describe one run, which ends after `states` crash states.

    `known` are failures of earlier runs. `first_open` allows crashes inside the very first open.
    """

    number: int
    states: int | None
    known: frozenset[tuple[int, str]]
    first_open: bool = True


@dataclass(frozen=True, slots=True)
class _RunJob:
    """Carry out runs in this process."""

    plan: TargetPlan
    tracker: DirtyTracker
    reuses: bool

    @contextmanager
    def opened(self) -> Iterator[Callable[[_RunPlan, Control], "_RunState"]]:
        """Return the function that carries out a run.

        Unless it `reuses` processes, none opens a second directory.
        """
        pool = ProcessPool()
        if not self.reuses:
            pool.end()
        try:
            yield partial(_carry_out, self.plan, pool if self.plan.reuse else None, self.tracker)
        finally:
            pool.end()


def _carry_out(
    plan: TargetPlan, pool: ProcessPool | None, tracker: DirtyTracker, history: _RunPlan, control: Control
) -> "_RunState":
    run = _RunState(plan, history, control, pool, tracker)
    try:
        run.carry_out(random.Random(f"{plan.seed} {history.number}"))
    except KeyboardInterrupt:
        raise Interrupted(run) from None
    run.tally.histories = 1
    return run


class _Explorer:
    """Present runs as parts of a campaign, numbered from `first` on.

    The end of a run depends on failures of earlier ones. `each` takes every run. Without `shrinks` failures stay as
    they were found. It continues after the runs of `before`, and is `paused` once `is_paused` said so.
    """

    launcher: Launcher = "spawn"
    holds_interrupts = False
    canary_time: CanaryTime = "first"

    def __init__(
        self,
        plan: TargetPlan,
        tracker: DirtyTracker,
        *,
        first: int = 0,
        each: TakeRun = _unheeded,
        shrinks: bool = True,
        before: TargetProgress | None = None,
        is_paused: Callable[[], bool] = lambda: False,
    ) -> None:
        self._before = before or TargetProgress()
        self.job = _RunJob(plan, tracker, reuses=not self._before.tally.reused_only)
        self.paused = False
        self._first, self._each, self._shrinks, self._is_paused = first, each, shrinks, is_paused
        self._plan, self._tracker = plan, tracker
        self._tally = TargetTally(kills_only=plan.settings.disk == "kill")
        self._tally.add(self._before.tally)
        self._known = self._before.known
        self._first_open = plan.start == "open" and not self._before.met_first_open

    def parts(self) -> Iterator[_RunPlan]:
        """Yield runs until the requested number of crash states is reached."""
        states = self._plan.states
        while states is None or self._tally.states < states:
            left = None if states is None else states - self._tally.states
            yield _RunPlan(self._first + self._tally.histories, left, self._known, self._first_open)

    def known(self, part: _RunPlan) -> "_RunState | None":
        """Return None, since no results are kept."""
        return None

    def tally(self) -> TargetTally:
        """Return the tally of this campaign, still empty."""
        return self._tally

    def count(self, made: "_RunState") -> int:
        """Return the number of crash states."""
        return made.tally.states

    def take(self, result: TargetResult, part: _RunPlan, made: "_RunState | Died[_RunPlan]") -> bool:
        """Take the result of a run, up to the one with enough failures."""
        assert isinstance(made, _RunState)
        result.tally.add(made.tally)
        for failure in made.failures:
            result.meet(_key(failure), failure)
        self._known, self._first_open = made.known, made.first_open
        self._each(part.number, made.tally, made.failures)
        if len(self._known) >= self._plan.failures_max:
            return False
        is_full = self._plan.states is not None and result.tally.states >= self._plan.states
        self.paused = not is_full and self._is_paused()
        return not self.paused

    def canary(self) -> str:
        """Return the canary if a kill showed its broken promise.

        A store with concurrent callers has a second canary, which is right for a single caller. The first turn of a
        part has tried it for all turns.
        """
        if self._before.runs:
            return self._before.canary
        trial = TargetTrial(self._plan.settings)
        write, entry, callers = trial.book.first_write, SHAPES[trial.shape], trial.promises.callers
        trial.end()
        found = replay(Case(Settings(target=entry.canary), (write, Crash(kill=True))), tracker=self._tracker)
        if found is None or found.broken.contract != 2:
            return ""
        if callers == 1:
            return entry.canary
        liar, program = entry.overlapping
        overlapping = replay(Case(Settings(target=liar), program), tracker=self._tracker)
        return f"{entry.canary} {liar.rpartition(':')[2]}" if overlapping is not None else ""

    def conclude(self, result: TargetResult) -> None:
        """Report what never happened."""
        result.silent = result.tally.silent
        result.result_hash = _hash_of(result.tally, result.found)

    def shrink(self, failure: Failure, budget: Budget, watch: Watch) -> tuple[Failure | None, bool]:
        """Shrink a case with a budget of its own, because a try takes longer here.

        A failure that shows in some tries only is kept as it was found. So is a failure of overlapping calls that no
        try shows, because it depends on the moment at which each of them took effect.
        """
        if not self._shrinks:
            return failure, False
        small, interrupted = shrink_case(failure, _BUDGET, watch, tracker=self._tracker)
        if small is None and not interrupted:
            is_overlapping = any(isinstance(each, Call) and each.verb == "together" for each in failure.case.operations)
            tries = OVERLAPPING_TRIES if is_overlapping else TRIES
            small = replay_several(failure.case, tries, tracker=self._tracker).failure
            small = small or (failure if is_overlapping else None)
        return small, interrupted

    def describe(self, failure: Failure) -> str:
        """Return the broken guarantee, the case, and a possible reason why it does not show again."""
        return f"{failure.broken}; case: {failure.case.token()}; does the store depend on time or randomness?"


@dataclass(frozen=True, slots=True)
class _DrawnCrash:
    """Hold a crash and the names of its disk faults."""

    crash: Crash
    hit: frozenset[str]


class _RunState:
    """Carry out one run and hold its result."""

    def __init__(
        self,
        plan: TargetPlan,
        history: _RunPlan,
        control: Control,
        pool: ProcessPool | None,
        tracker: DirtyTracker,
    ) -> None:
        self.tally = TargetTally()
        self.failures: list[Failure] = []
        self.known = history.known
        self.first_open = history.first_open
        self._plan, self._history, self._control = plan, history, control
        self._pool, self._tracker = pool, tracker

    @property
    def goes_on(self) -> bool:
        """Return whether the run should continue."""
        states = self.tally.states
        self._control.tell(states, "")
        return (
            len(self.known) < self._plan.failures_max
            and (self._history.states is None or states < self._history.states)
            and not self._control.is_over()
        )

    def carry_out(self, rng: random.Random) -> None:
        """Run one store in its sessions, and crash branches of them."""
        owns_process = self._history.number % _OWN_PROCESS_EVERY == 0
        trial = TargetTrial(self._plan.settings, None if owns_process else self._pool)
        if (
            trial.promises.callers > 1
        ):  # a failure may depend on timing, and then no try shows that reuse is not the cause
            self._pool = None
            if trial.has_reused_process:
                trial.end()
                trial = TargetTrial(self._plan.settings)
        self.tally.shape, self.tally.kills_only = trial.shape, trial.promises.kills_only
        try:
            for _ in range(rng.choice(_SESSIONS)):
                for _ in range(rng.randrange(4, 9)):
                    self._run(trial, Open() if trial.closed else _drawn(rng, trial.book))
                places = _drawn_places(trial, rng, self.first_open)
                if trial.why_no_power_loss:
                    self.tally.without_power[trial.why_no_power_loss] += _STATES_PER_LIFE - len(places) + 1
                for place in places:
                    if not self.goes_on:
                        return
                    if self.first_open or not _is_in_first_open(trial, place):
                        self._branch(trial, place, rng)
                if not self.goes_on:
                    return
                kills = not trial.asks_power_loss or rng.random() < _KILL_SHARE
                self._crash(trial, Crash(kill=kills, back=0), rng)
            trial.release()
        except GuaranteeBroken as broken:
            self._meet(trial, broken)
        finally:
            trial.end()

    def _branch(self, trial: TargetTrial, place: CrashPoint, rng: random.Random) -> None:
        number, back = place
        branch = trial.branch(number, self._pool)
        try:
            kills = rng.random() < _KILL_SHARE or not branch.asks_power_loss
            crash = self._drawn_crash(branch, Crash(kill=kills, back=back), rng)
            epilogue, is_crashed_again = rng.choice(branch.book.epilogues), rng.random() < _SECOND_LOSS_SHARE
            if not is_crashed_again:
                branch.record_no_more()
            self._carry_out_crash(branch, crash)
            for operation in epilogue:
                self._run(branch, operation)
            if is_crashed_again:
                if branch.why_no_power_loss:
                    self.tally.without_power[branch.why_no_power_loss] += 1
                elif branch.asks_power_loss:
                    self._crash(branch, Crash(), rng)
            branch.release()
        except GuaranteeBroken as broken:
            self._meet(branch, broken)
        finally:
            branch.end()

    def _crash(self, trial: TargetTrial, crash: Crash, rng: random.Random) -> None:
        """Crash a run. For a power loss draw what survives."""
        self._carry_out_crash(trial, self._drawn_crash(trial, crash, rng))

    def _drawn_crash(self, trial: TargetTrial, crash: Crash, rng: random.Random) -> _DrawnCrash:
        """Return a crash with what survives it, and count its faults."""
        tally = self.tally
        hit: frozenset[str] = frozenset()
        tally.states += 1
        if not crash.kill:
            position = trial.position(crash.back)
            state = disk_state(trial.files.base, trial.files.journal, position, disk=trial.settings.disk)
            facts = in_flight_writes(state)
            survived = draw(facts, rng, _CHANCES)
            crash = Crash(back=crash.back, survived=survived)
            hit = frozenset(hit_faults(facts, survived))
            tally.enabled.update(enabled_faults(facts))
            tally.hit.update([*hit, *(["lost"] if hit else [])])
        fault = "kill" if crash.kill else "power"
        tally.enabled[fault] += 1
        tally.hit[fault] += 1
        return _DrawnCrash(crash, hit)

    def _carry_out_crash(self, trial: TargetTrial, drawn: _DrawnCrash) -> None:
        """Crash a run and count what the crash lost."""
        before = trial.coverage.copy()
        trial.run(drawn.crash)
        happened = trial.coverage - before
        if happened["power_lost"] + happened["kill_lost"]:
            self.tally.effective.update([*drawn.hit, "kill" if drawn.crash.kill else "power"])

    def _run(self, trial: TargetTrial, operation: Operation) -> None:
        self.tally.hit[operation.verb if isinstance(operation, Call) else operation.op] += 1
        trial.run(operation)

    def _meet(self, trial: TargetTrial, broken: GuaranteeBroken) -> None:
        """Keep a failure. A failure may end the campaign if it is a new one."""
        failure = Failure(Case(trial.settings, tuple(trial.performed)), broken)
        if trial.has_reused_process:
            again = replay_several(failure.case, TRIES, tracker=self._tracker).failure
            if again is None:  # the process carried something from one directory to the next
                self.tally.reused_only += 1
                if self._pool is not None:
                    self._pool.end()
                return
            failure = again
        self.failures.append(failure)
        if is_in_first_open(failure.case):
            self.first_open = False
        else:
            self.known |= {signature(failure.broken)}


def _hash_of(tally: TargetTally, found: "Iterable[Found[Failure]]") -> str:
    """Return the hash of a result: its counts, and its failures as found."""
    met = [f"{each.failure.broken} {each.failure.case.token()} {each.times}" for each in found]
    return blake2b("\n".join([*tally.lines(), *met]).encode(), digest_size=16).hexdigest()


def _met_again(known: "Found[Failure]", times: int) -> "Found[Failure]":
    return replace(known, times=known.times + times)


def _key(failure: Failure) -> Hashable:
    """Return what identifies a failure. All failures of the very first open are one."""
    return "first open" if is_in_first_open(failure.case) else signature(failure.broken)


def _is_in_first_open(trial: TargetTrial, place: CrashPoint) -> bool:
    number, back = place
    return back > 0 and trial.spans[number].operations == 0


def _drawn_places(trial: TargetTrial, rng: random.Random, first_open: bool) -> list[CrashPoint]:
    """Draw the crash points of a session.

    Points inside the very first open are drawn only if `first_open` allows them.
    """
    everywhere, lossy = (
        [place for place in places if first_open or not _is_in_first_open(trial, place)] for places in _places(trial)
    )
    if not everywhere:
        return []
    return [rng.choice(lossy if lossy and rng.random() < _LOSSY_SHARE else everywhere) for _ in range(_STATES_PER_LIFE)]


def _places(trial: TargetTrial) -> tuple[list[CrashPoint], list[CrashPoint]]:
    """Return all crash points of a session, and those with un-synced data."""
    everywhere: list[CrashPoint] = []
    lossy: list[CrashPoint] = []
    state, position = DiskState(trial.files.base, disk=trial.settings.disk), 0
    for number, span in enumerate(trial.spans):
        if not trial.supports_power_loss(number):
            break
        for event in range(span.first, span.last):
            state.apply_all(trial.files.journal[position : trial.files.events[event]])
            position = trial.files.events[event]
            places = [(number, span.last - event), *([(number, 0)] if event == span.last - 1 else [])]
            everywhere += places
            lossy += places if in_flight_writes(state) else []
    return everywhere, lossy


def _drawn(rng: random.Random, book: Run) -> Operation:
    """Draw a read or a write of the store's shape, a flush or a close."""
    kind = rng.choices(("call", "flush", "close"), (74, 12, 8))[0]
    if kind == "call":
        return book.draw(rng.choice)
    return Flush() if kind == "flush" else Close()
