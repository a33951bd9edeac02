"""A crash campaign on a store of other people: programs drawn from a seed, crash states drawn from what they did.

A history is one store in up to three lives of a few operations. Of what it did in a life some crash states are made: a
power loss or a kill in any of its verbs, be it in the middle; each is opened by a process of its own, judged, and goes
on for an operation or two. Then the history itself is crashed, and lives on. Where the process cannot be watched there
are kills of the history alone, each behind an answer.

Whoever found nothing has to show that he could have: a canary has to be caught, and something un-synced has to have
been there to lose; else the verdict is vacuous.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from model.operations import Close, Crash, Flush, Get, GetMessage, Open, Operation, Put, QueryKey
from properties.campaign.replay import Failure, Shrunk, replay, shrink, signature
from properties.contract import GuaranteeBroken, HarnessError, Verdict
from properties.disk.dirty import DirtyTracker
from properties.disk.disk import DiskState
from properties.disk.images import disk_state, facts_of
from properties.disk.sampling import Chances, armed_faults, draw, fired_faults
from properties.foreign.protocol import Promises
from properties.foreign.trial import TargetTrial
from properties.program.case import Case, Settings

__all__ = ["FAILURES_MAX", "SHRINK_SECONDS", "TargetPlan", "TargetResult", "run_target_campaign"]

SHRINK_SECONDS = 60.0
"""How long one failure may be made smaller: each try is a program with processes of its own."""
FAILURES_MAX = 3
CANARY = "properties.explore.foreign.canary:open_store"
_LIVES = (1, 1, 2, 3)
"""What only the first life shows, as that its files have no names yet, is to be seen often."""
_CHANCES = Chances(nothing=0.15, all_but_one=0.4, older=0.5)
"""With the few facts of a small store, more of them are lost."""
_STATES_PER_LIFE = 6
_KILL_SHARE = 0.3
_CODAS: tuple[tuple[Operation, ...], ...] = ((), (Put(fill=6),), (Flush(),), (Close(), Open()), (Put(fill=6), Close()))
"""What a store is asked for behind a crash."""
_SECOND_LOSS_SHARE = 0.5
"""How often the power is then lost once more: what was recovered has to be as safe as was promised."""
_LOSSY_SHARE = 0.7
"""Of the crash states so many are at places where something is un-synced, as long as there are such places."""

Place = tuple[int, int]
"""Which verb, and how many events before its answer; 0 is at rest behind it."""


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """What to run; it ends after so many crash states, or so many seconds, or with so many different failures."""

    settings: Settings
    seed: int = 0
    states: int | None = None
    seconds: float | None = None
    failures_max: int = FAILURES_MAX


@dataclass
class TargetResult:
    """What a campaign has found. `armed`, `fired` and `mattered` count disasters, faults and operations by name.

    `left_out` says why no power loss was made, or is empty.
    """

    failures: list[Shrunk] = field(default_factory=list)
    armed: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    mattered: Counter[str] = field(default_factory=Counter)
    states: int = 0
    histories: int = 0
    exploring_s: float = 0.0
    left_out: str = ""
    canary_caught: bool = False
    interrupted: bool = False

    @property
    def missing(self) -> list[str]:
        """What has not happened, and has to for a verdict."""
        needed = ["put", "close", "open", "kill", *([] if self.left_out else ["power", "lost"])]
        return [name for name in needed if not self.fired[name]] + ([] if self.canary_caught else ["canary"])

    @property
    def verdict(self) -> Verdict:
        """Broken with a failure, vacuous where something is missing."""
        if self.failures:
            return Verdict.BROKEN
        return Verdict.VACUOUS if self.missing else Verdict.HOLDS


def run_target_campaign(
    plan: TargetPlan, *, tracker: DirtyTracker, progress: Callable[[int, float], None] = lambda states, seconds: None
) -> TargetResult:
    """Run it; an interrupt ends it with what there is. Raises HarnessError when a failure does not show again."""
    result = TargetResult()
    campaign = _Campaign(plan, result, tracker, progress)
    try:
        result.canary_caught = _catches_the_canary(tracker)
        while campaign.goes_on:
            campaign.run_history(random.Random(f"{plan.seed} {result.histories}"))
            result.histories += 1
    except KeyboardInterrupt:
        result.interrupted = True
    return result


def _catches_the_canary(tracker: DirtyTracker) -> bool:
    found = replay(Case(Settings(target=CANARY), (Put(), Crash(kill=True))), tracker=tracker)
    return found is not None and found.broken.contract == 2


class _Campaign:
    """One run; what it comes to is in `result`."""

    def __init__(
        self, plan: TargetPlan, result: TargetResult, tracker: DirtyTracker, progress: Callable[[int, float], None]
    ) -> None:
        self._plan, self._result, self._tracker, self._progress = plan, result, tracker, progress
        self._known: set[tuple[int, str]] = set()
        self._started = perf_counter()
        self._shrinking_s = 0.0

    @property
    def goes_on(self) -> bool:
        """Whether there is something left to be done."""
        plan, result = self._plan, self._result
        result.exploring_s = perf_counter() - self._started - self._shrinking_s
        self._progress(result.states, result.exploring_s)
        return (
            len(result.failures) < plan.failures_max
            and (plan.states is None or result.states < plan.states)
            and (plan.seconds is None or result.exploring_s < plan.seconds)
        )

    def run_history(self, rng: random.Random) -> None:
        """Run one store in its lives, and branches off them."""
        trial = TargetTrial(self._plan.settings)
        try:
            for _ in range(rng.choice(_LIVES)):
                for _ in range(rng.randrange(4, 9)):
                    self._run(trial, Open() if trial.closed else _drawn(rng, trial.promises))
                self._result.left_out = trial.why_no_power_loss
                for place in [] if trial.why_no_power_loss else _drawn_places(trial, rng):
                    if not self.goes_on:
                        return
                    self._branch(trial, place, rng)
                if not self.goes_on:
                    return
                kills = bool(trial.why_no_power_loss) or rng.random() < _KILL_SHARE
                self._crash(trial, Crash(kill=kills, back=0), rng)
        except GuaranteeBroken as broken:
            self._found(Failure(Case(trial.settings, tuple(trial.performed)), broken))
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
            self._found(Failure(Case(branch.settings, tuple(branch.performed)), broken))
        finally:
            branch.end()

    def _crash(self, trial: TargetTrial, crash: Crash, rng: random.Random) -> None:
        """Crash a trial; of a power loss draw what survives."""
        result, before = self._result, trial.coverage.copy()
        fired: set[str] = set()
        result.states += 1
        if not crash.kill:
            position = trial.position(crash.back)
            state = disk_state(trial.files.base, trial.files.journal, position, disk=trial.settings.disk)
            facts = facts_of(state)
            survived = draw(facts, rng, _CHANCES)
            crash = Crash(back=crash.back, survived=survived)
            fired = fired_faults(facts, survived)
            result.armed.update(armed_faults(facts))
            result.fired.update([*fired, *(["lost"] if fired else [])])
        disaster = "kill" if crash.kill else "power"
        result.armed[disaster] += 1
        result.fired[disaster] += 1
        trial.run(crash)
        happened = trial.coverage - before
        if happened["power_lost"] + happened["kill_lost"]:
            result.mattered.update([*fired, disaster])

    def _run(self, trial: TargetTrial, operation: Operation) -> None:
        self._result.fired[operation.op] += 1
        trial.run(operation)

    def _found(self, failure: Failure) -> None:
        """Keep a failure, made small, unless one like it is known."""
        if signature(failure.broken) in self._known:
            return
        started = perf_counter()
        again = replay(failure.case, tracker=self._tracker)
        if again is None:
            raise HarnessError(f"a failure does not show again: {failure.broken}; does the store go by time or chance?")
        self._known |= {signature(failure.broken), signature(again.broken)}
        small = shrink(again, tracker=self._tracker, seconds=SHRINK_SECONDS, keep_evidence=True)
        self._result.failures.append(small)
        self._shrinking_s += perf_counter() - started
        if small.ended == "interrupt":
            raise KeyboardInterrupt


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
            lossy += places if facts_of(state) else []
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
