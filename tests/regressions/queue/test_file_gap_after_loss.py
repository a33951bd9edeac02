"""A queue keeps its numbers when it loses a file in the middle.

Symptom: after a power loss a queue whose messages had all expired was gone: its numbers began at 0 again (contract 4,
10).
Cause: of two new files of a queue the disk kept only the name of the second one. The open kept the files after the gap
and removed those before it, and with them the last durable number. The records of the files after the gap were lost
with the power, so these files went too.
Fix: files before a gap stay until the log has reported the units of the queue. If it reports none, the newest files
count that have a record before the begin of the log (impl/queue/consume_queue.py, `end_reconcile`;
impl/queue/queue_files.py, `map_before_gap`).
Found by: the crash campaign.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.model.operations import Clean, Close, Crash, Flush, Open, Operation, Put, Step
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=1024, queue_units=1)
OLD, OTHER = Put(body_bytes=800), Put(topic="U", body_bytes=800)
REPUT = Step(service="reput")
BEFORE: tuple[Operation, ...] = (OLD, OTHER, REPUT, Flush(), Clean(percent=88), Put(), Put(), REPUT)
SECOND = "/store/consumequeue/T/0/00000000000000000040"
NAME = {f"link {SECOND}": 1}


class StaysBehindTheGap(ConsumeQueue):
    """The mistake: a queue keeps only the files after a gap."""

    def _map_before_gap(self) -> bool:
        self.drop_before_gap()
        return False


def loss(*, with_unit: bool) -> Crash:
    """Return a power loss that takes the records and the first new file.

    It leaves the second, zeroed or whole.
    """
    return Crash(survived={**NAME, f"page {SECOND} 0": 1} if with_unit else NAME)


@pytest.mark.parametrize("with_unit", [False, True])
def test_the_file_in_front_of_the_gap_knows_the_next_number(attempt: Attempt, with_unit: bool) -> None:
    assert attempt((*BEFORE, loss(with_unit=with_unit), Put(), REPUT, Close(), Open()), SETTINGS) is None


@pytest.mark.parametrize("with_unit", [False, True])
def test_without_it_the_numbers_begin_again(attempt: Attempt, with_unit: bool) -> None:
    broken = attempt((*BEFORE, loss(with_unit=with_unit)), SETTINGS, Parts({ConsumeQueue: StaysBehindTheGap}))
    assert broken is not None
    assert broken.contract == 4


@pytest.mark.parametrize("kill", [False, True])
def test_a_crash_while_the_queue_goes_back_is_made_good(attempt: Attempt, kill: bool) -> None:
    gone = {f"unlink {SECOND}": 0}
    for back in range(1, 20):
        again = Crash(kill=kill, back=back, survived={} if kill else gone)
        assert attempt((*BEFORE, loss(with_unit=True), again, Put(), REPUT, Crash()), SETTINGS) is None
