"""A crash campaign on a foreign store: programs drawn from a seed, crash states drawn from what they did.

A history is one store in up to three lives of a few operations. Of what it did in a life some crash states are made: a
power loss or a kill in any of its verbs, be it in the middle; each is opened by a process of its own, judged, and goes
on for an operation or two. Then the history itself is crashed, and lives on. Where the process cannot be watched there
are kills of the history alone, each after an answer.

Histories are the parts of a campaign (properties/campaign/engine.py), carried out in this process, one after the other.
A campaign that finds nothing has to show that it could have: a canary has to be caught, and something un-synced has to
have been there to lose; else the verdict is vacuous.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from tornpage.model.operations import Close, Crash, Flush, Get, GetMessage, Open, Operation, Put, QueryKey
from tornpage.properties.campaign.engine import Budget, CanaryTime, Progress, explore, ignored, small_case
from tornpage.properties.campaign.replay import Failure, replay, signature
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Interrupted, Launcher
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.disk.images import disk_state, in_flight_writes
from tornpage.properties.disk.sampling import Chances, draw, enabled_faults, hit_faults
from tornpage.properties.foreign.protocol import Promises
from tornpage.properties.foreign.trial import TargetTrial
from tornpage.properties.program.case import Case, Settings

__all__ = ["FAILURES_MAX", "SHRINK_SECONDS", "TargetPlan", "TargetResult", "TargetTally", "run_target_campaign"]

SHRINK_SECONDS = 60.0
"""How long one failure may be made smaller: each try is a program with processes of its own."""
_BUDGET = Budget(2_000, SHRINK_SECONDS)
FAILURES_MAX = 3
CANARY = "tornpage.properties.explore.foreign.canary:open_store"
_LIVES = (1, 1, 2, 3)
"""What only the first life shows, as that its files have no names yet, is to be seen often."""
_CHANCES = Chances(nothing=0.15, all_but_one=0.4, older=0.5)
"""With the few facts of a small store, more of them are lost."""
_STATES_PER_LIFE = 6
_KILL_SHARE = 0.3
_CODAS: tuple[tuple[Operation, ...], ...] = ((), (Put(fill=6),), (Flush(),), (Close(), Open()), (Put(fill=6), Close()))
"""What a store is asked for after a crash."""
_SECOND_LOSS_SHARE = 0.5
"""How often the power is then lost once more: what was recovered has to be as safe as was promised."""
_LOSSY_SHARE = 0.7
"""Of the crash states so many are at places where something is un-synced, as long as there are such places."""

Place = tuple[int, int]
"""Which verb, and how many events before its answer; 0 is at rest after it."""


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """What to run; it ends after so many crash states, or so many seconds, or with so many different failures."""

    settings: Settings
    seed: int = 0
    states: int | None = None
    seconds: float | None = None
    failures_max: int = FAILURES_MAX


@dataclass
class TargetTally:
    """What was run. `armed`, `fired` and `mattered` count disasters, faults and operations by name.

    `left_out` says why no power loss was made; it is empty where one was possible, None before the end of a life.
    """

    armed: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    mattered: Counter[str] = field(default_factory=Counter)
    states: int = 0
    histories: int = 0
    left_out: str | None = None

    def add(self, other: "TargetTally") -> None:
        """Count what a history has counted."""
        self.armed += other.armed
        self.fired += other.fired
        self.mattered += other.mattered
        self.states += other.states
        self.histories += other.histories
        self.left_out = self.left_out if other.left_out is None else other.left_out

    @property
    def silent(self) -> list[str]:
        """What has not happened, and has to for a verdict."""
        needed = ["put", "close", "open", "kill", *([] if self.left_out else ["power", "lost"])]
        return [name for name in needed if not self.fired[name]]

    def lines(self) -> list[str]:
        """Return the counts, one per line."""
        kinds = {"armed": self.armed, "fired": self.fired, "mattered": self.mattered}
        counts = [f"{kind} {name} {number}" for kind, each in kinds.items() for name, number in sorted(each.items())]
        return [f"states {self.states}", f"histories {self.histories}", *counts]


TargetResult = CampaignResult[TargetTally, Failure]
"""What a campaign on a foreign store found."""


def run_target_campaign(plan: TargetPlan, *, tracker: DirtyTracker, progress: Progress = ignored) -> TargetResult:
    """Run it; an interrupt ends it with what there is. Raises HarnessError when a failure does not show again."""
    result = explore(_Explorer(plan, tracker), seconds=plan.seconds, progress=progress)
    if result.faults:
        raise HarnessError(result.faults[0])
    return result


@dataclass(frozen=True, slots=True)
class _History:
    """One history, which ends early after so many crash states. `known` are the failures of the histories before."""

    number: int
    states: int | None
    known: frozenset[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class _HistoryJob:
    """Carries out histories in this process."""

    plan: TargetPlan

    @contextmanager
    def opened(self) -> Iterator[Callable[[_History, Control], "_HistoryRun"]]:
        """Return what carries out a history."""
        yield partial(_carry_out, self.plan)


def _carry_out(plan: TargetPlan, history: _History, control: Control) -> "_HistoryRun":
    run = _HistoryRun(plan, history, control)
    try:
        run.carry_out(random.Random(f"{plan.seed} {history.number}"))
    except KeyboardInterrupt:
        raise Interrupted(run) from None
    run.tally.histories = 1
    return run


class _Explorer:
    """Histories as parts of a campaign; where one ends depends on what those before it have met."""

    launcher: Launcher = "spawn"
    holds_interrupts = False
    canary_time: CanaryTime = "first"

    def __init__(self, plan: TargetPlan, tracker: DirtyTracker) -> None:
        self.job = _HistoryJob(plan)
        self._plan, self._tracker = plan, tracker
        self._tally = TargetTally()
        self._known: frozenset[tuple[int, str]] = frozenset()

    def parts(self) -> Iterator[_History]:
        """Yield histories until there are as many crash states as were asked for."""
        states = self._plan.states
        while states is None or self._tally.states < states:
            left = None if states is None else states - self._tally.states
            yield _History(self._tally.histories, left, self._known)

    def known(self, part: _History) -> "_HistoryRun | None":
        """Know none."""
        return None

    def tally(self) -> TargetTally:
        """Return the tally of this campaign, still of nothing."""
        return self._tally

    def count(self, made: "_HistoryRun") -> int:
        """Count crash states."""
        return made.tally.states

    def take(self, result: TargetResult, part: _History, made: "_HistoryRun | Died[_History]") -> bool:
        """Take a history in, up to the one with which there are enough failures."""
        assert isinstance(made, _HistoryRun)
        result.tally.add(made.tally)
        for failure in made.failures:
            result.meet(signature(failure.broken), failure)
        self._known = made.known
        return len(self._known) < self._plan.failures_max

    def canary(self) -> str:
        """Return the canary if a kill showed that it lies."""
        found = replay(Case(Settings(target=CANARY), (Put(), Crash(kill=True))), tracker=self._tracker)
        return CANARY if found is not None and found.broken.contract == 2 else ""

    def conclude(self, result: TargetResult) -> None:
        """Say what never happened."""
        result.silent = result.tally.silent
        met = [f"{each.failure.broken} {each.failure.case.token()} {each.times}" for each in result.found]
        text = "\n".join([*result.tally.lines(), *met])
        result.result_hash = blake2b(text.encode(), digest_size=16).hexdigest()

    def small(self, failure: Failure, budget: Budget, watch: Watch) -> tuple[Failure | None, bool]:
        """Make a case small; the budget is one of its own, for tries take longer here."""
        return small_case(failure, _BUDGET, watch, tracker=self._tracker)

    def told(self, failure: Failure) -> str:
        """Return the broken guarantee, the case, and what may be the reason that it does not show again."""
        return f"{failure.broken}; case: {failure.case.token()}; does the store go by time or chance?"


class _HistoryRun:
    """One history while it is carried out, and what it came to."""

    def __init__(self, plan: TargetPlan, history: _History, control: Control) -> None:
        self.tally = TargetTally()
        self.failures: list[Failure] = []
        self.known = history.known
        self._plan, self._history, self._control = plan, history, control

    @property
    def goes_on(self) -> bool:
        """Whether there is something left to be done."""
        states = self.tally.states
        self._control.tell(states, "")
        return (
            len(self.known) < self._plan.failures_max
            and (self._history.states is None or states < self._history.states)
            and not self._control.is_over()
        )

    def carry_out(self, rng: random.Random) -> None:
        """Run one store in its lives, and branches off them."""
        trial = TargetTrial(self._plan.settings)
        try:
            for _ in range(rng.choice(_LIVES)):
                for _ in range(rng.randrange(4, 9)):
                    self._run(trial, Open() if trial.closed else _drawn(rng, trial.promises))
                self.tally.left_out = trial.why_no_power_loss
                for place in [] if trial.why_no_power_loss else _drawn_places(trial, rng):
                    if not self.goes_on:
                        return
                    self._branch(trial, place, rng)
                if not self.goes_on:
                    return
                kills = bool(trial.why_no_power_loss) or rng.random() < _KILL_SHARE
                self._crash(trial, Crash(kill=kills, back=0), rng)
        except GuaranteeBroken as broken:
            self._meet(trial, broken)
        finally:
            trial.end()

    def _branch(self, trial: TargetTrial, place: Place, rng: random.Random) -> None:
        number, back = place
        branch = trial.branch(number)
        try:
            self._crash(branch, Crash(kill=rng.random() < _KILL_SHARE, back=back), rng)
            for operation in rng.choice(_CODAS):
                self._run(branch, operation)
            if rng.random() < _SECOND_LOSS_SHARE:
                self._crash(branch, Crash(), rng)
        except GuaranteeBroken as broken:
            self._meet(branch, broken)
        finally:
            branch.end()

    def _crash(self, trial: TargetTrial, crash: Crash, rng: random.Random) -> None:
        """Crash a trial; of a power loss draw what survives."""
        tally, before = self.tally, trial.coverage.copy()
        fired: set[str] = set()
        tally.states += 1
        if not crash.kill:
            position = trial.position(crash.back)
            state = disk_state(trial.files.base, trial.files.journal, position, disk=trial.settings.disk)
            facts = in_flight_writes(state)
            survived = draw(facts, rng, _CHANCES)
            crash = Crash(back=crash.back, survived=survived)
            fired = hit_faults(facts, survived)
            tally.armed.update(enabled_faults(facts))
            tally.fired.update([*fired, *(["lost"] if fired else [])])
        disaster = "kill" if crash.kill else "power"
        tally.armed[disaster] += 1
        tally.fired[disaster] += 1
        trial.run(crash)
        happened = trial.coverage - before
        if happened["power_lost"] + happened["kill_lost"]:
            tally.mattered.update([*fired, disaster])

    def _run(self, trial: TargetTrial, operation: Operation) -> None:
        self.tally.fired[operation.op] += 1
        trial.run(operation)

    def _meet(self, trial: TargetTrial, broken: GuaranteeBroken) -> None:
        """Keep a failure; whether it is a new one decides when the campaign ends."""
        self.failures.append(Failure(Case(trial.settings, tuple(trial.performed)), broken))
        self.known |= {signature(broken)}


def _drawn_places(trial: TargetTrial, rng: random.Random) -> list[Place]:
    """Draw places of a life to crash at."""
    everywhere, lossy = _places(trial)
    return [rng.choice(lossy if lossy and rng.random() < _LOSSY_SHARE else everywhere) for _ in range(_STATES_PER_LIFE)]


def _places(trial: TargetTrial) -> tuple[list[Place], list[Place]]:
    """Return all places of a life, and those at which a power loss has something to lose."""
    everywhere: list[Place] = []
    lossy: list[Place] = []
    state, position = DiskState(trial.files.base, disk=trial.settings.disk), 0
    for number, window in enumerate(trial.spans):
        for event in range(window.first, window.last):
            state.apply_all(trial.files.journal[position : trial.files.events[event]])
            position = trial.files.events[event]
            places = [(number, window.last - event), *([(number, 0)] if event == window.last - 1 else [])]
            everywhere += places
            lossy += places if in_flight_writes(state) else []
    return everywhere, lossy


def _drawn(rng: random.Random, promises: Promises) -> Operation:
    """Draw an operation that a store has promised to have."""
    weights = (50, 8 * promises.offsets, 8 * promises.queues, 8 * promises.index, 12, 8)
    kind = rng.choices(("put", "get", "read", "find", "flush", "close"), weights)[0]
    match kind:
        case "put":
            return Put(
                topic=rng.choice(("T", "T", "U")),
                queue_id=rng.choice((0, 0, 1)),
                body_bytes=rng.choice((0, 8, 8, 40, 300, 900, 5000)),
                fill=rng.randrange(6),
                properties=rng.choice(("", "", "KEYS\x01k1", "KEYS\x01k1 k2")),
            )
        case "get":
            return Get(record=rng.randrange(20))
        case "read":
            return GetMessage(queue=rng.randrange(4), shift=rng.randrange(8))
        case "find":
            return QueryKey(key=rng.randrange(4))
        case "flush":
            return Flush()
    return Close()
