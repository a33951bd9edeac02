"""Run the Hypothesis machines as a command does: seeded, silent, and with the failure as a case."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import HypothesisException
from hypothesis.reporting import with_reporter
from hypothesis.stateful import run_state_machine_as_test

from properties.campaign.replay import Failure, Shrunk, replay, shrink
from properties.campaign.shrink import Watch
from properties.contract import HarnessError, Verdict
from properties.disk.dirty import DirtyTracker
from properties.explore.machines.consumer_machine import ConsumerMachine
from properties.explore.machines.delay_machine import DelayMachine
from properties.explore.machines.equal_draws import draw_from_seeds_alone
from properties.explore.machines.failing_disk_machine import FailingDiskMachine
from properties.explore.machines.flush_machine import FlushMachine
from properties.explore.machines.machine import CommitLogMachine, Progress, TrialMachine, planted_machine
from properties.explore.machines.put_machine import PutMachine
from properties.explore.machines.queue_machine import QueueMachine
from properties.explore.machines.retention_machine import RetentionMachine
from properties.explore.machines.target_machine import TargetMachine

__all__ = ["MACHINES", "PROFILES", "TARGET_PROFILES", "TURN_EXAMPLES_MAX", "CheckResult", "check"]

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
"""The same where each disaster takes a process."""

TURN_EXAMPLES_MAX = 10
"""Machines take turns of at most so many examples, so that what only the last one sees is seen soon too; and within a
turn examples resemble each other, as Hypothesis makes them from those before."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the machines found; `fired` counts operations that were carried out, by kind, `silent` names what never
    happened and makes the run vacuous. `examples` were asked for, or done when somebody interrupted and nothing
    was found.
    """

    verdict: Verdict
    fired: Counter[str]
    examples: int
    failure: Shrunk | None = None
    silent: tuple[str, ...] = ()
    interrupted: bool = False


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
    turn_examples_max: int = TURN_EXAMPLES_MAX,
) -> CheckResult:
    """Compare store and model over `examples` runs of up to `steps` rules, the machines in turns.

    `progress` is called with the number of examples that are done, `making_small` after each replay while a failure is
    made small; settings that are `fixed` are not drawn. With `keep_evidence` the failure has
    its evidence. Raises HarnessError when a failure does not replay from its own case.
    """
    draw_from_seeds_alone()
    planted = [planted_machine(_EVERY[name], bug) for name in machines]
    told = _Examples(progress)
    for machine in planted:
        machine.tracker = tracker
        machine.fixed = fixed or {}
        machine.progress = Progress(told.begins)
    turn_examples = max(1, min(turn_examples_max, examples // len(planted)))
    left, turn = examples, 0
    while left > 0:
        for machine in planted:
            count = min(left, turn_examples)
            told.next_turn(count)
            try:
                failure = _run(machine, count, steps=steps, start_seed=start_seed * 1_000_003 + turn) if count else None
                again = None if failure is None else replay(failure.case, tracker=tracker)
            except KeyboardInterrupt:
                return CheckResult(Verdict.UNKNOWN, _fired(planted), told.ended, interrupted=True)
            if again is not None:
                small = shrink(
                    again,
                    tracker=tracker,
                    tries_max=shrink_tries_max,
                    seconds=shrink_seconds,
                    watch=making_small,
                    keep_evidence=keep_evidence,
                )
                is_cut = small.ended == "interrupt"
                return CheckResult(Verdict.BROKEN, _fired(planted), examples, small, interrupted=is_cut)
            if failure is not None:
                raise HarnessError(f"a failure does not replay: {failure.broken}")
            left, turn = left - count, turn + 1
    silent = tuple(dict.fromkeys(name for machine in planted for name in machine.missing()))
    return CheckResult(Verdict.VACUOUS if silent else Verdict.HOLDS, _fired(planted), examples, silent=silent)


class _Examples:
    """Counts examples. Hypothesis may try a few more than a turn has, or less, where there are no more."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self._progress = progress
        self._before = self._turn = self._begun = 0

    def next_turn(self, examples: int) -> None:
        self._before += self._turn
        self._turn, self._begun = examples, 0

    @property
    def ended(self) -> int:
        """How many have come to their end; the last one that began has not."""
        return self._before + min(max(self._begun - 1, 0), self._turn)

    def begins(self) -> None:
        self._begun += 1
        self._progress(self.ended)


def _fired(machines: Sequence[type[TrialMachine]]) -> Counter[str]:
    return sum((machine.fired for machine in machines), Counter())


def _run(machine: type[TrialMachine], examples: int, *, steps: int, start_seed: int) -> Failure | None:
    """Run one machine; return its failure, or None. Raises HarnessError when it fails outside the store."""
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),  # our own shrinker knows what may be merged, and keeps to one failure
    )
    try:
        with with_reporter(lambda text: None):
            run_state_machine_as_test(seed(start_seed)(machine), settings=profile)
    except AssertionError as error:
        if machine.failure is None:
            raise HarnessError(f"the machine failed outside the store: {error}") from error
        return machine.failure
    except HypothesisException as error:
        if machine.is_interrupted:  # it says that an example ended earlier than the time before
            raise KeyboardInterrupt from error
        raise
    return None
