"""Run the Hypothesis machine as a command does: seeded, silent, and with the failure as a case."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.reporting import with_reporter
from hypothesis.stateful import run_state_machine_as_test

from properties.machine import Progress, planted_machine
from properties.recorder.dirty import DirtyTracker
from properties.replay import Failure, replay, shrink
from properties.verdict import HarnessError, Verdict

__all__ = ["PROFILES", "CheckResult", "check"]

PROFILES = {"quick": (150, 25), "deep": (5_000, 60)}
"""Examples and steps per example."""

_RULES = ("put", "get", "flush", "close", "open", "fail_sync", "crash", "damage")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the machine found; `fired` counts operations that were carried out, by kind."""

    verdict: Verdict
    fired: Counter[str]
    failure: Failure | None


def check(
    *,
    bug: str,
    examples: int,
    steps: int,
    start_seed: int,
    tracker: DirtyTracker,
    progress: Callable[[int], None] = lambda operations: None,
) -> CheckResult:
    """Compare store and model over `examples` runs of up to `steps` rules each.

    `progress` is called with the number of operations carried out so far.
    Raises HarnessError when a failure does not replay from its own case.
    """
    machine = seed(start_seed)(planted_machine(bug))
    machine.tracker = tracker
    machine.progress = Progress(progress)
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
            run_state_machine_as_test(machine, settings=profile)
    except AssertionError as error:
        if machine.failure is None:
            raise HarnessError(f"the machine failed outside the store: {error}") from error
        again = replay(machine.failure.case, tracker=tracker)
        if again is None:
            raise HarnessError(f"a failure does not replay: {machine.failure.broken}") from error
        return CheckResult(Verdict.BROKEN, machine.fired, shrink(again, tracker=tracker))
    silent_rules = [name for name in _RULES if not machine.fired[name]]
    return CheckResult(Verdict.VACUOUS if silent_rules else Verdict.HOLDS, machine.fired, None)
