"""Recovery writes again the pages that a failed sync has dropped.

Symptom: after a failed sync, a store opened again on the same machine presented records, synced them and raised its
floor. A power loss took them, and the next open found damage below the floor.
Cause: after a failed sync the kernel marks the pages clean and keeps them in memory. The recovery after it read them
there, and its own sync of clean pages wrote nothing. Bytes that a recovery had erased could reappear in the same way.
Fix: after an unclean exit recovery writes again what it keeps above the floor and the zeros after it, as far as the
disk has anything there.
Found by: I/O fault rules (`sync-lost: kind=log`) with an open after them; and the machine of failing disks, which
killed a recovery between the failed sync and the byte that reappeared in place of an erased one.
"""

import pytest

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Close, Crash, Flush, Open, Operation, Put, Step
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Settings

LOST = AimFault("sync-lost", "kind=log and nth=1")
PUT, BIG = Put(), Put(body_bytes=3_000)
TORN = Crash(survived={"page /store/commitlog/00000000000000000000 2": 1})


def test_what_a_recovery_presents_is_written_again(attempt: Attempt) -> None:
    operations, settings = (PUT, LOST, Flush(), Open(), PUT, Crash()), Settings(file_bytes=1024)
    assert attempt(operations, settings) is None
    broken = attempt(operations, settings, parts_of("page-cache-believed"))
    assert broken is not None
    assert broken.contract == 6


def test_an_erasure_whose_sync_failed_is_done_again(attempt: Attempt) -> None:
    operations, settings = (BIG, Flush(), BIG, BIG, BIG, LOST, TORN), Settings(file_bytes=16_384)
    assert attempt(operations, settings) is None
    for back in range(40):
        assert attempt((*operations, Crash(kill=True, back=back)), settings) is None, f"killed {back} events before"
    broken = attempt(operations, settings, parts_of("erasure-believed"))
    assert broken is not None
    assert broken.contract == 3


@pytest.mark.parametrize("kind", ["queue", "index", "extension"])
@pytest.mark.parametrize(
    "end", [(Close(),), (Step(service="reput"), Step(service="flush-queues", after_ms=60_000), Crash())]
)
def test_units_and_entries_are_written_again_too(attempt: Attempt, kind: str, end: tuple[Operation, ...]) -> None:
    """A unit that a clean exit had promised was not on the disk (contract 4).

    Found by a campaign of I/O fault rules.
    """
    put = Put(properties="KEYS\x01k1\x02TAGS\x01TagA")
    operations = (AimFault("sync-lost", f"kind={kind} and op=sync"), put, Open(), *end)
    for with_extension in (False, True):
        assert attempt(operations, Settings(file_bytes=1024, queue_ext=with_extension)) is None
