"""Symptom: behind a power loss in a recovery the checkpoint said that queue units were durable which were not there
(contract 9). RocketMQ, opened on such a directory, would begin its recovery of the queues behind them.

Cause: a queue whose middle file is lost has its files in front of the gap removed while it is loaded, and their names
are synced; only after that was the checkpoint told to promise nothing of the queues.
Fix: an open withdraws the promise before it loads queues and index (impl/recovery/opening.py, `_recover`).
Found by: `tornpage explore --seed 201 --disk posix-strict`, 27,727 states in; this is its case made small by hand.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import Crash, Operation, Put, Step
from tornpage.properties.program.case import Settings

SETTINGS = Settings(sync_flush=True, queue_units=4)
THIRD_FILE = "/store/consumequeue/T/0/00000000000000000160"


def crashed_in_recovery(back: int) -> tuple[Operation, ...]:
    """A queue loses the second of its three files; the recovery of that loses power in its turn."""
    return (
        *[Put()] * 3,
        Step(service="reput"),
        Step(service="flush-queues"),
        *[Put()] * 7,
        Step(service="reput"),
        Crash(survived={f"create {THIRD_FILE}": 1, f"size {THIRD_FILE}": 1}),
        Crash(back=back),
    )


def test_no_moment_of_the_recovery_leaves_a_promise_without_its_units(attempt: Attempt) -> None:
    for back in range(1, 35):
        assert attempt(crashed_in_recovery(back), SETTINGS) is None
