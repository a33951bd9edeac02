"""Symptom: a queue whose exit was clean was gone with the power (contract 4).

Cause: the directory of a topic had been made for a queue file that the disk refused. With the topic deleted nobody
synced its name, and whoever opened the store behind the clean exit took it for durable, as all names are then.
Fix: the name of the directory waits for a sync from when it is made, whatever becomes of the file.
Found by: the first hunt for deletions on disks that fail.
"""

from tests.support.regressions import Attempt
from tornpage.model.operations import AimFault, Close, Crash, DeleteTopics, Open, Put, Step
from tornpage.properties.program.case import Settings


def test_its_name_is_durable_with_the_next_clean_exit(attempt: Attempt) -> None:
    refused = (Put(), AimFault("no-space", "kind=queue"), Step(service="reput"), DeleteTopics(), Open())
    for disk in ("posix-strict", "journal"):
        for ending in ((Open(),), (Close(), Crash())):
            assert attempt((*refused, Put(queue_id=1), *ending), Settings(file_bytes=1024, disk=disk)) is None
