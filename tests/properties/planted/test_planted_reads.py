"""Test bugs of reads that need a reader of their own, or a forged unit."""

from pathlib import Path

import pytest

from tests.support.impl.reading import Log, limits_of
from tornpage.impl.errors import BufferReleased
from tornpage.impl.message.message import Message
from tornpage.impl.queue.units import Unit
from tornpage.impl.read.queue_reads import QueueReads
from tornpage.impl.read.queued_records import QueuedRecords
from tornpage.model.operations import Close, Put, Step
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted import parts_of
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

REPUT = Step(service="reput")


@pytest.mark.parametrize("bug", ["", "units-believed"])
def test_a_unit_that_leads_to_another_message_is_passed_unless_it_is_believed(bug: str, tmp_path: Path) -> None:
    """A writable store rewrites every wrong unit, so this one is forged."""
    log = Log(tmp_path)
    try:
        log.put(Message("U", b"of another queue"), units=False)
        log.queue("T").stored.append(Unit(0, 1, 0))
        records = parts_of(bug).of(QueuedRecords)(None)
        reads = QueueReads(log.queues, log.reader, records=records, limits=limits_of())
        with reads.get_message("T", 0, 0, max_msg_nums=1, message_filter=None) as found:
            assert [bytes(message.message().body) for message in found.messages] == (
                [b"of another queue"] if bug else []
            )
    finally:
        log.close()


@pytest.mark.parametrize("bug", ["", "never-taken-back"])
def test_a_buffer_that_a_reader_keeps_goes_with_the_store(bug: str, tracker: DirtyTracker) -> None:
    """A close with a held buffer shows whether files leak."""
    trial = lockstep_of(Settings(bug=bug), tracker=tracker)
    trial.run(Put())
    trial.run(REPUT)
    with trial.store.get_message("T", 0, 0) as kept:
        if bug:
            with pytest.raises(GuaranteeBroken, match="contract 11: a closed store still holds files"):
                trial.run(Close())
            assert not kept.messages[0].released
        else:
            trial.run(Close())
            with pytest.raises(BufferReleased):
                bytes(kept.messages[0])
