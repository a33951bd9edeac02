"""Run a campaign of Hypothesis machines: seeded, in turns, with the failure as a case."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import HypothesisException
from hypothesis.reporting import with_reporter
from hypothesis.stateful import run_state_machine_as_test

from tornpage.properties.campaign.engine import Budget, CanaryTime, explore, shrink_case
from tornpage.properties.campaign.replay import Failure, signature
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.campaign.workers import Control, Died, Interrupted, Launcher
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.machines.consumer_machine import ConsumerMachine
from tornpage.properties.explore.machines.delay_machine import DelayMachine
from tornpage.properties.explore.machines.equal_draws import use_seeds_only
from tornpage.properties.explore.machines.failing_disk_machine import FailingDiskMachine
from tornpage.properties.explore.machines.flush_machine import FlushMachine
from tornpage.properties.explore.machines.machine import CommitLogMachine, Progress, TrialMachine, planted_machine
from tornpage.properties.explore.machines.put_machine import PutMachine
from tornpage.properties.explore.machines.queue_machine import QueueMachine
from tornpage.properties.explore.machines.retention_machine import RetentionMachine
from tornpage.properties.explore.machines.target_machine import TargetMachine
from tornpage.properties.foreign.trial import is_in_first_open
from tornpage.properties.foreign.zygote import zygotes

__all__ = [
    "MACHINES",
    "PROFILES",
    "SHORT_TURNS",
    "TARGET_PROFILES",
    "TURN_EXAMPLES_MAX",
    "CheckResult",
    "MachineTally",
    "check",
]

MACHINES: dict[str, type[TrialMachine]] = {
    "commit-log": CommitLogMachine,
    "put": PutMachine,
    "flush": FlushMachine,
    "queue": QueueMachine,
    "retention": RetentionMachine,
    "delay": DelayMachine,
    "consumer": ConsumerMachine,
    "failing-disk": FailingDiskMachine,
}

_EVERY: dict[str, type[TrialMachine]] = {**MACHINES, "target": TargetMachine}
"""The last one needs a target, as a fixed setting."""

PROFILES = {"quick": (320, 25), "deep": (5_000, 60)}
"""Examples and steps per example."""

TARGET_PROFILES = {"quick": (60, 15), "deep": (1_500, 40)}
"""The same for targets, where each crash fault takes a process."""

SHORT_TURNS: Mapping[str, int] = {
    "commit-log": 5,
    "put": 6,
    "flush": 3,
    "queue": 1,
    "retention": 2,
    "delay": 2,
    "consumer": 3,
    "failing-disk": 2,
}
"""Examples of each machine in a turn, so that all turns take about the same processor time: an example of 25 steps of
the queue machine takes about ten times as long as one of the put machine."""

TURN_EXAMPLES_MAX = 10
"""Machines take turns of at most this many examples, so that failures of the last machine also show soon. Examples
within a turn resemble each other, because Hypothesis derives them from earlier ones."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Describe one turn of a machine: a number of examples from one seed.

    With `from_first_answer` no crash of a target is inside its very first open.
    """

    machine: str
    examples: int
    seed: int
    from_first_answer: bool = False


@dataclass(frozen=True, slots=True)
class TurnMade:
    """Hold the result of a turn: finished examples, and counts of operations and effects."""

    machine: str
    examples: int
    fired: Counter[str]
    effects: Counter[str]
    failure: Failure | None = None


@dataclass
class MachineTally:
    """Count what the machines did: finished `examples`, and operations and effects by machine."""

    examples: int = 0
    operations: dict[str, Counter[str]] = field(default_factory=dict)
    effects: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def fired(self) -> Counter[str]:
        """Return the number of operations carried out, by kind."""
        return sum(self.operations.values(), Counter())

    def add(self, made: TurnMade) -> None:
        """Add a turn."""
        self.examples += made.examples
        self.operations[made.machine].update(made.fired)
        self.effects[made.machine].update(made.effects)


CheckResult = CampaignResult[MachineTally, Failure]
"""The result of a campaign of machines; `silent` names what never happened."""


@zygotes()
def check(
    *,
    bug: str,
    examples: int,
    steps: int,
    start_seed: int,
    tracker: DirtyTracker,
    machines: Sequence[str] = tuple(MACHINES),
    progress: Callable[[int], None] = lambda examples: None,
    making_small: Watch = lambda tries, operations, losses: None,
    shrink_tries_max: int = 2_000,
    shrink_seconds: float | None = None,
    keep_evidence: bool = True,
    fixed: Mapping[str, Any] | None = None,
    turn_examples_max: int | Mapping[str, int] = TURN_EXAMPLES_MAX,
    seconds: float | None = None,
    from_first_answer: bool = False,
) -> CheckResult:
    """Compare store and model over `examples` runs of up to `steps` rules.

    The machines take turns of up to `turn_examples_max` examples, a number for all or one for each machine. `progress`
    is called with the number of finished examples, `making_small` after each replay while a failure is shrunk. Settings
    in `fixed` are not drawn. With `keep_evidence` the failure has its evidence.
    After `seconds` no further example begins. Raises HarnessError if a failure does not replay from its own case.
    """
    use_seeds_only()
    most = turn_examples_max if isinstance(turn_examples_max, Mapping) else dict.fromkeys(machines, turn_examples_max)
    turn_examples = {name: max(1, min(most[name], examples // len(machines))) for name in machines}
    turns = partial(_turns, turn_examples, examples, start_seed * 1_000_003)
    budget = Budget(shrink_tries_max, shrink_seconds)
    job = _MachineJob(tuple(machines), bug, steps, tracker, fixed or {})
    explorer = _Explorer(job, turns, budget, keep_evidence, from_first_answer)
    result = explore(
        explorer,
        seconds=seconds,
        progress=lambda done, seconds: progress(done),
        making_small=lambda number, tries, operations, losses: making_small(tries, operations, losses),
    )
    if result.faults:
        raise HarnessError(result.faults[0])
    return result


def _turns(turn_examples: Mapping[str, int], examples: int, first_seed: int) -> Iterator[Turn]:
    """Yield turns, one machine after the other, until no examples are left."""
    left, number = examples, first_seed
    while left > 0:
        for machine, most in turn_examples.items():
            count = min(left, most)
            if count:
                yield Turn(machine, count, number)
            left, number = left - count, number + 1


@dataclass(frozen=True, slots=True)
class _MachineJob:
    """Run turns of machines with the tracker of this process."""

    machines: tuple[str, ...]
    bug: str
    steps: int
    tracker: DirtyTracker
    fixed: Mapping[str, Any]

    @contextmanager
    def opened(self) -> Iterator[Callable[[Turn, Control], TurnMade]]:
        """Return the function that carries out a turn."""
        planted = {name: planted_machine(_EVERY[name], self.bug) for name in self.machines}
        for machine in planted.values():
            machine.tracker = self.tracker
            machine.fixed = self.fixed
        yield lambda turn, control: self._carry_out(planted[turn.machine], turn, control)

    def _carry_out(self, machine: type[TrialMachine], turn: Turn, control: Control) -> TurnMade:
        """Carry out a turn. An interrupt raises Interrupted with the result so far."""
        if issubclass(machine, TargetMachine):
            machine.from_first_answer = turn.from_first_answer
        told = _Examples(turn.examples, control)
        machine.fired, machine.effects = Counter(), Counter()
        machine.progress = Progress(told.begins)
        try:
            failure = _run(machine, turn.examples, steps=self.steps, start_seed=turn.seed)
        except KeyboardInterrupt as interrupt:
            made = TurnMade(turn.machine, told.ended, machine.fired, machine.effects)
            raise Interrupted(made) from interrupt
        examples = told.ended if control.is_over() else turn.examples
        return TurnMade(turn.machine, examples, machine.fired, machine.effects, failure)


class _Explorer:
    """Present turns of machines as parts of a campaign."""

    launcher: Launcher = "fork"
    holds_interrupts = False
    canary_time: CanaryTime = "in parts"

    def __init__(
        self,
        job: _MachineJob,
        turns: Callable[[], Iterator[Turn]],
        budget: Budget,
        keep_evidence: bool,
        from_first_answer: bool,
    ) -> None:
        self.job = job
        self._turns = turns
        self._budget = budget
        self._keep_evidence = keep_evidence
        self._from_first_answer = from_first_answer

    def parts(self) -> Iterator[Turn]:
        """Yield the turns."""
        for turn in self._turns():
            yield replace(turn, from_first_answer=self._from_first_answer)

    def known(self, part: Turn) -> TurnMade | None:
        """Return None, since no results are kept."""
        return None

    def tally(self) -> MachineTally:
        """Return empty counters, in the order of the machines."""
        names = self.job.machines
        return MachineTally(0, {name: Counter() for name in names}, {name: Counter() for name in names})

    def count(self, made: TurnMade) -> int:
        """Return the number of examples."""
        return made.examples

    def take(self, result: CheckResult, part: Turn, made: TurnMade | Died[Turn]) -> bool:
        """Take the result of a turn; the first failure ends the campaign.

        A failure inside the very first open of a target is kept once, and the campaign continues without such crashes.
        Raises HarnessError if there is no result.
        """
        if isinstance(made, Died):
            raise HarnessError(f"a worker ended in a turn of the machine {part.machine}: it {made.how}")
        result.tally.add(made)
        if made.failure is not None:
            key = signature(made.failure.broken), is_in_first_open(made.failure.case)
            result.meet(key, made.failure, history=str(part.seed))
            if is_in_first_open(made.failure.case):
                self._from_first_answer = True
                return True
        return made.failure is None

    def canary(self) -> str:
        """Return an empty string. Machines are checked against what must happen in them."""
        return ""

    def conclude(self, result: CheckResult) -> None:
        """Report what never happened, or that an interrupted campaign decides nothing."""
        tally = result.tally
        told = (tally.examples, tally.operations, tally.effects, [each.failure.case.token() for each in result.found])
        result.result_hash = blake2b(repr(told).encode(), digest_size=16).hexdigest()
        if result.found:
            return
        if result.interrupted:
            result.undecided.append(f"interrupted after {tally.examples:,} examples")
            return
        silent = [
            name
            for machine in self.job.machines
            for name in _EVERY[machine].never_happened(tally.operations[machine], tally.effects[machine])
        ]
        result.silent = list(dict.fromkeys(silent))

    def shrink(self, failure: Failure, budget: Budget, watch: Watch) -> tuple[Failure | None, bool]:
        """Return the failure shrunk within the caller's budget."""
        return shrink_case(failure, self._budget, watch, tracker=self.job.tracker, keep_evidence=self._keep_evidence)

    def describe(self, failure: Failure) -> str:
        """Return the broken guarantee."""
        return str(failure.broken)


class _TimeIsOver(KeyboardInterrupt):
    """Raise this to end a turn at the time limit. Hypothesis lets an interrupt through."""


class _Examples:
    """Count the examples of a turn. Hypothesis may run a few more or fewer than requested."""

    def __init__(self, examples: int, control: Control) -> None:
        self._examples = examples
        self._control = control
        self._begun = 0

    @property
    def ended(self) -> int:
        """Return the number of finished examples. The last one that began has not finished."""
        return min(max(self._begun - 1, 0), self._examples)

    def begins(self) -> None:
        """Note that an example begins. Raises _TimeIsOver after the time limit."""
        if self._control.is_over():
            raise _TimeIsOver
        self._begun += 1
        self._control.tell(self.ended, "")


def _run(machine: type[TrialMachine], examples: int, *, steps: int, start_seed: int) -> Failure | None:
    """Run one machine; return its failure, or None.

    Raises HarnessError if it fails outside the store.
    """
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),  # tornpage's own shrinker knows what may be merged, and keeps to one failure
    )
    try:
        with with_reporter(lambda text: None):
            run_state_machine_as_test(seed(start_seed)(machine), settings=profile)
    except AssertionError as error:
        if machine.failure is None:
            raise HarnessError(f"the machine failed outside the store: {error}") from error
        return machine.failure
    except _TimeIsOver:
        return None
    except HypothesisException as error:
        if machine.is_interrupted:  # it reports that an example ended earlier than the time before
            raise KeyboardInterrupt from error
        raise
    return None
