"""Bugs of index and reads, each with the smallest case that shows it: the trial breaks, and holds without the bug."""

from dataclasses import replace
from pathlib import Path

import pytest

from impl.errors import BufferReleased
from impl.message import Message
from impl.queue_reads import QueueReads
from impl.units import Unit
from properties.cases.case import (
    Case,
    Close,
    Crash,
    Damage,
    FailSync,
    Flush,
    GetMessage,
    Member,
    OffsetByTime,
    Open,
    Operation,
    Put,
    PutBatch,
    QueryKey,
    RefuseFile,
    Settings,
    Step,
)
from properties.cases.replay import replay
from properties.planted import PLANTED, components_of, indexing, pulling, querying
from properties.recorder.dirty import DirtyTracker
from properties.trial.trial import Trial
from properties.verdict import GuaranteeBroken
from tests.impl.reading import Log, limits_of

REPUT = Step(service="reput")
FLUSH_QUEUES = Step(service="flush-queues", after_ms=60_000)
POISONED = (Put(), Flush(), Put(), REPUT, FailSync(), Flush())
EARLIER_KEYED = Put(properties="KEYS\x01Aa", advance_ms=-1500)
KEYED, OTHER = Put(properties="KEYS\x01Aa"), Put(properties="KEYS\x01BB")
LATER_KEYED = Put(properties="KEYS\x01Aa", advance_ms=3000)
MANY = PutBatch(members=(Member(),) * 401)
TWO_FILES = Settings(index_entries=2)
MANY_FIT = Settings(file_bytes=65536, queue_units=60, index=False)

CASES: dict[str, tuple[Settings, tuple[Operation, ...]]] = {
    "RMQ-B05": (Settings(), (Put(), FailSync(), Flush(), REPUT)),
    "RMQ-B35": (Settings(), (*POISONED, GetMessage(shift=1))),
    "RMQ-B37": (Settings(), (Put(), Put(advance_ms=500), REPUT, OffsetByTime(shift_ms=1))),
    "any-of-equal-times": (Settings(), (Put(), Put(advance_ms=0), REPUT, OffsetByTime())),
    "last-for-ever": (Settings(), (Put(), REPUT, OffsetByTime(shift_ms=1))),
    "RMQ-B38": (Settings(), (GetMessage(queue=-1),)),
    "RMQ-B43": (MANY_FIT, (MANY, MANY, REPUT, GetMessage(max_msg_nums=1000, tags="TagA"))),
    "RMQ-B44": (Settings(), (Put(), REPUT, GetMessage(shift=2))),
    "RMQ-B45": (MANY_FIT, (MANY, MANY, REPUT, GetMessage(tags="TagA"))),
    "RMQ-B46": (Settings(), (Put(), Put(), REPUT, GetMessage(max_msg_nums=1))),
    "one-queue-file": (Settings(queue_units=1), (Put(), Put(), REPUT, GetMessage())),
    "one-message-at-least": (Settings(), (Put(), REPUT, GetMessage(max_msg_nums=0))),
    "pulls-behind-the-end": (Settings(), (*POISONED, GetMessage())),
    "units-believed": (Settings(), (Put(), Put(topic="U"), Damage(record=1, beside="queue"))),
    "stops-at-damage": (Settings(), (Put(), Put(), Damage())),
    "equal-hashes": (Settings(), (KEYED, OTHER, REPUT, QueryKey())),
    "limit-before-the-key": (Settings(), (KEYED, OTHER, REPUT, QueryKey(max_num=1))),
    "rounds-overlap": (Settings(), (KEYED, REPUT, QueryKey())),
    "RMQ-B52": (Settings(), (QueryKey(max_num=1 << 60),)),
    "RMQ-B47": (Settings(), (Put(), REPUT, OffsetByTime())),
    "RMQ-B47-IPv6": (Settings(), (Put(born_v6=True), REPUT, OffsetByTime())),
    "RMQ-B48": (Settings(), (KEYED, Close())),
    "RMQ-B49": (Settings(), (KEYED, KEYED, REPUT, Crash(kill=True))),
    "RMQ-B51": (Settings(), (Put(), REPUT, KEYED, RefuseFile(), REPUT)),
    "inherited-time": (TWO_FILES, (KEYED, LATER_KEYED, REPUT, QueryKey(begin_ms=3000, window_ms=1000))),
    "whole-seconds": (Settings(), (KEYED, Put(properties="KEYS\x01Aa", advance_ms=500), REPUT, QueryKey(begin_ms=1))),
    "ends-at-an-older-time": (
        Settings(), (KEYED, LATER_KEYED, EARLIER_KEYED, REPUT, QueryKey(begin_ms=2000)),
    ),
    "one-name-a-millisecond": (TWO_FILES, (KEYED, KEYED, REPUT)),
    "equal-is-not-skipped": (
        Settings(index_entries=3),
        (KEYED, REPUT, Put(properties="KEYS\x01Aa k"), RefuseFile(), REPUT, REPUT, Close()),
    ),
    "newest-index-file-dropped": (Settings(), (KEYED, Close(), Open())),
    "index-names-not-synced": (Settings(), (KEYED, Close())),
}  # fmt: skip


def test_every_bug_of_reads_has_its_case_or_a_test_of_its_own() -> None:
    bugs = {bug for module in (pulling, querying, indexing) for bug, *_ in module.BUGS}
    assert bugs == CASES.keys() | {"never-taken-back"}


@pytest.mark.parametrize("bug", CASES)
def test_its_smallest_case_shows_it_and_holds_without_it(bug: str, tracker: DirtyTracker) -> None:
    settings, operations = CASES[bug]
    failure = replay(Case(replace(settings, bug=bug), operations), tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == PLANTED[bug].contract
    assert failure.case.operations == operations
    assert replay(Case(settings, operations), tracker=tracker) is None


@pytest.mark.parametrize("bug", ["", "units-believed"])
def test_a_unit_that_leads_to_another_message_is_passed_unless_it_is_believed(bug: str, tmp_path: Path) -> None:
    """A store that may write makes every unit anew that is wrong, so this one is forged."""
    log = Log(tmp_path)
    try:
        log.put(Message("U", b"of another queue"), units=False)
        log.queue("T").stored.append(Unit(0, 1, 0))
        records = components_of(bug).queued_records(None)
        reads = QueueReads(log.queues, log.reader, records=records, limits=limits_of())
        with reads.get_message("T", 0, 0, max_msg_nums=1, message_filter=None) as found:
            assert [bytes(message.message().body) for message in found.messages] == (
                [b"of another queue"] if bug else []
            )
    finally:
        log.close()


@pytest.mark.parametrize("bug", ["", "never-taken-back"])
def test_a_buffer_that_a_reader_keeps_goes_with_the_store(bug: str, tracker: DirtyTracker) -> None:
    """A close with a buffer that is kept shows whether files leak."""
    trial = Trial(Settings(bug=bug), tracker=tracker)
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
