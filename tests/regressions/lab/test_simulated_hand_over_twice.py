"""A simulated member that gives a queue up twice in one listener call hands it over once.

Symptom: `run_group` raised KeyError.
Cause: the first hand-over still waited for the listener after it was called off, and ended together with the second.
Fix: a hand-over that was called off does not end the next one (sim/consumers/member.py).
Found by: reading the code.
"""

from tornpage.sim.consumers.group import run_group
from tornpage.sim.consumers.scenario import GroupScenario, Member
from tornpage.sim.distributions import Constant

S = 1_000_000_000


def test_queue_given_up_twice_is_handed_over_once() -> None:
    scenario = GroupScenario(
        queues=2,
        members=(
            Member("a"),
            Member("b", joins_ns=30 * S, leaves_ns=32 * S),
            Member("c", joins_ns=32 * S + S // 100),
        ),
        rate_per_s=1.0,
        service=Constant(20 * S),
        duration_ns=90 * S,
    )
    found = run_group(scenario, 0)
    assert found.moved == 3
    assert found.duplicates == 0
