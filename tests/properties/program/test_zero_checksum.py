"""Test bodies that give their record the checksum 0, as the judges' decoder computes it."""

import pytest

from tornpage.model.operations import Put
from tornpage.model.payloads import message_of
from tornpage.model.state import Record as PutRecord
from tornpage.properties.decode.record import Record, decode_record
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.zero_checksum import checksum_of


def decoded(trial: Lockstep, record: PutRecord) -> Record:
    item = decode_record(trial.memory.ledger.stored(record), offset=record.offset, room_bytes=1 << 14)
    assert isinstance(item, Record)
    return item


@pytest.mark.parametrize("body_bytes", [8, 9, 300])
def test_some_records_have_the_checksum_0(body_bytes: int, tracker: DirtyTracker) -> None:
    trial = lockstep_of(Settings(), tracker=tracker)
    for fill in range(12):
        put = Put(body_bytes=body_bytes, fill=fill, body_kind="sums to zero", born_v6=fill % 2 > 0, properties="k\x01v")
        trial.run(put)
    found = [decoded(trial, record) for record in trial.log.records]
    zeros = [item.checksum == 0 for item in found]
    assert len(zeros) == 12
    assert sum(zeros) == trial.coverage["checksums_of_zero"] > 3


def test_the_checksum_is_worked_out_as_it_is_stored(tracker: DirtyTracker) -> None:
    trial = lockstep_of(Settings(), tracker=tracker)
    for put in (Put(), Put(topic="订单", body_bytes=900, store_v6=True, born_v6=True, sys_flag=0x38, flag=-1)):
        trial.run(put)
    for record in trial.log.records:
        assert decoded(trial, record).checksum == checksum_of(record, record.message.body or b"")


@pytest.mark.parametrize("settings", [Settings(trailer=False), Settings(file_bytes=1024)])
def test_without_a_checksum_or_a_place_the_body_is_as_drawn(settings: Settings, tracker: DirtyTracker) -> None:
    trial = lockstep_of(settings, tracker=tracker)
    size_bytes = 8 if not settings.trailer else 4000
    trial.run(put := Put(body_bytes=size_bytes, body_kind="sums to zero"))
    assert [each.message.body for each in trial.log.records] == [message_of(put).body] * (not settings.trailer)
    assert not trial.coverage["checksums_of_zero"]
