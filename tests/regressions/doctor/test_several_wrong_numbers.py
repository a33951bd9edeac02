"""Symptom: after damage of several queue offsets, consumers did not reach messages.

1. A record far before the others kept its number. The queue began with it and could not take the others past the gap,
   but their numbers counted as used. Puts got numbers past the gap, which no consumer reached.
2. A record that followed a record of several queues counted as one of several queues. Its unit
   then did not contradict it, and it kept a wrong number.
3. A record with a wrong queue id claimed the number 0 of another queue, whose unit stated the right record. The next
   put to that queue got the number 1. At the next open both were taken for a new numbering, and the right record had no
   number.
4. With compiled dispatch a record with a wrong queue id was put into its queue before earlier records of that queue.
   Those were then left out.
5. A queue counted as one that records name, although only a record of another claim named it. Of two numberings the
   longest one counted then, and not the last one.

Cause: a record before the chain could be any distance away from it. Of a claim without its last record, both parts were
taken for records that name the queue. A claim of the number 0 that another one continues began a new numbering,
whatever the units say. Compiled dispatch gives runs in the order of their first records, and a run was given to its
queue as a whole before the runs after it. A claim without its last record kept that this record had named the queue.
Fix: such a record is at most one queue file before the chain. A claim keeps for its first and its last record whether
they name the queue. A claim that is continued begins a numbering only if no unit states another record with the number
0 (`QueueNumbers`). Runs of a batch with a record of another queue are divided at that record (`Rulings.applied`). A
claim knows whether its last record names the queue, and whether an earlier one does.
Found by: `tornpage explore crashes`, factors `end_numbers` and `end_field`, and programs of `QueueNumbers` alone
(properties/lockstep/parts/numbers.py).
"""

import shutil
import struct
from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import QUEUE_ID_AT, bodies, change, config, forget_our_files, put
from tests.support.impl.stores import open_store
from tests.support.regressions import Attempt
from tornpage.impl.dispatch.dispatch_records import dispatch_records
from tornpage.impl.dispatch.queue_numbers import QueueNumbers
from tornpage.impl.kernels.compiled import CompiledParts
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.queue.units import UNIT
from tornpage.model.operations import HarmField, HarmNumbers, Operation, Put, Step, WrongClaim
from tornpage.properties.lockstep.parts.part_disk import PartDisk
from tornpage.properties.program.case import Settings

SETTINGS = Settings(trailer=False, queue_units=16)
NAMING = Put(topic="T", properties="INNER_MULTI_DISPATCH\x01U")


def test_a_record_far_before_the_others(attempt: Attempt) -> None:
    harm = HarmNumbers((WrongClaim(1, "from_here", 40),), "lost")
    operations: tuple[Operation, ...] = (Put(), Put(), Put(), Put(), Step("reput"), harm)
    assert attempt(operations, SETTINGS) is None


def test_a_record_after_one_that_names_the_queue(attempt: Attempt) -> None:
    harm = HarmNumbers((WrongClaim(2, "number", 17),), "shifted")
    operations: tuple[Operation, ...] = (NAMING, Put(topic="U"), Put(topic="U"), Step("reput"), harm)
    assert attempt(operations, Settings(trailer=False, queue_units=16, multi_dispatch=True)) is None


def test_a_record_of_another_queue_with_the_number_0(attempt: Attempt) -> None:
    operations: tuple[Operation, ...] = (Put(), Put(topic="U"), Put(topic="U", queue_id=3), HarmField("queue_id", 2))
    assert attempt(operations, SETTINGS) is None


@pytest.mark.slow
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_record_whose_wrong_queue_began_before_its_own(is_compiled: bool, tmp_path: Path) -> None:
    with open_store(tmp_path, config=config()) as store:
        results = [put(store, number, queue_id) for number, queue_id in enumerate((0, 1, 1, 1, 0, 1, 0))]
    forget_our_files(tmp_path)
    shutil.rmtree(tmp_path / "consumequeue")
    change(tmp_path, results[2].offset + QUEUE_ID_AT, struct.pack(">i", 0))
    compiled = CompiledParts(records_worth_loading=0)
    parts = Parts({dispatch_records: compiled.dispatch_records}) if is_compiled else Parts()
    with open_store(tmp_path, config=config(), parts=parts) as store:
        assert bodies(store, queue_id=0) == [b"000", b"004", b"006"]
        assert bodies(store, queue_id=1) == [b"001", b"003", b"005"]


def test_a_numbering_whose_last_record_alone_names_the_queue() -> None:
    queues = ConsumeQueues(PartDisk(), "/part", file_bytes=100, writable=True, clean_exit=True)
    claims = [(0, False), (1, False), (2, True), (0, False), (1, False)]
    runs = [
        QueueRun((b"T", 0), number, UNIT.pack(100 * at, 100, 0), 100 * (at + 1), named=named)
        for at, (number, named) in enumerate(claims)
    ]
    found = QueueNumbers(queues, log_min=0)
    found.take(runs)
    assert [run.end_offset for run in found.rulings().applied(runs)] == [400, 500]
