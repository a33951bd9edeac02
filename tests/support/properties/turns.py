"""Rules of a machine that ran in a few examples, always the same ones."""

import sys
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tornpage.model.operations import Operation
from tornpage.properties.explore.machines.machine import TrialMachine

__all__ = ["counted", "rules_of"]

_TURN_EXAMPLES = 10
"""Examples of one run of Hypothesis, which are similar to each other."""

_NO_RULES = {"open_store", "start", "carry_out", "teardown"}


def rules_of(machine: type[TrialMachine]) -> set[str]:
    """Return the names of its rules, including those of every machine."""
    own = {
        name
        for kind in (machine, TrialMachine)
        for name, value in vars(kind).items()
        if callable(value) and not name.startswith("_")
    }
    return own - _NO_RULES


def counted(machine: type[TrialMachine], *, examples: int) -> tuple[Counter[str], type[TrialMachine]]:
    """Run a machine until all rules have run, for this many examples at most.

    Returns how often each of its rules had an effect, and the class that ran.
    """
    seen: Counter[str] = Counter()

    def carry_out(self: TrialMachine, operation: Operation) -> None:
        frame = sys._getframe().f_back
        while frame is not None and frame.f_locals.get("self") is self:
            seen[frame.f_code.co_name] += 1
            frame = frame.f_back
        machine.carry_out(self, operation)

    fresh: dict[str, Any] = {"carry_out": carry_out, "fired": Counter(), "effects": Counter()}
    counting: type[TrialMachine] = type("Counting" + machine.__name__, (machine,), fresh)
    few = settings(
        max_examples=_TURN_EXAMPLES,
        stateful_step_count=25,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    for turn in range(examples // _TURN_EXAMPLES):
        run_state_machine_as_test(seed(turn)(counting), settings=few)
        if rules_of(machine) <= set(seen) and not counting.missing():
            break
    return seen, counting
