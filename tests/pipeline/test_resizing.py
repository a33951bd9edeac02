"""Test that a copy with log files of another size has every record and audits clean."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.pipeline.test_repair import records_of, tree
from tests.pipeline.test_salvage import served
from tests.support.pipeline.handmade import copied, overwrite
from tornpage import Message, MessageStore, MessageStoreConfig
from tornpage.pipeline.audit.audit import audit_store
from tornpage.pipeline.repairing import RepairDone, RepairRefused, carry_out, prepare_repair
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import look
from tornpage.properties.judge.shape import SettingsOverride

STORES = (
    "01-plain-ascii",
    "03-rollover-blanks-retention",
    "04-hosts-and-batches",
    "05-transactions-delays-light-queues",
    "06-index-files-collisions",
    "08-halt-async",
)


def converted(store: Path, target: Path, file_bytes: int) -> RepairDone:
    prepared = prepare_repair(store, target, SettingsOverride(), log_file_bytes=file_bytes)
    return carry_out(prepared.plan, prepared.rows)


def anywhere(record: Record) -> Record:
    """Return a record without its offsets and checksum."""
    properties = record.properties[: len(record.properties) - (0 if record.checksum is None else 20)]
    here = replace(record, offset=0, physical_offset=0, prepared_transaction_offset=0)
    return replace(here, checksum=None, properties=properties, raw=b"")


def largest(store: Path) -> int:
    return max(each.size_bytes for each in records_of(store)) + 8


@pytest.mark.parametrize("size", ["smallest", 100_003, 1 << 20])
@pytest.mark.parametrize("name", STORES)
def test_the_copy_has_every_record_in_order(name: str, size: str | int, tmp_path: Path) -> None:
    store, copy = copied(name, tmp_path / "store"), tmp_path / "copy"
    file_bytes = largest(store) if isinstance(size, str) else size
    before = tree(store)
    done = converted(store, copy, file_bytes)
    assert tree(store) == before
    assert done.audit.verdict == "holds"
    assert [each for each in done.audit.findings if each.severity != "note"] == []
    records = records_of(copy)
    assert [anywhere(each) for each in records] == [anywhere(each) for each in records_of(store)]
    assert all(each.physical_offset == each.offset for each in records)
    assert all(each.offset // file_bytes == (each.end_offset + 7) // file_bytes for each in records)
    view = look(copy)
    assert {file.size_bytes for file in view.files} == {file_bytes}
    assert all(file.base_offset % file_bytes == 0 for file in view.files)
    for path in (store / "config").glob("consumerOffset*"):
        assert (copy / "config" / path.name).read_bytes() == path.read_bytes()
    queues = sorted({path.parent for path in (store / "consumequeue").glob("*/*/*")})
    assert sorted(
        path.relative_to(copy) for path in {path.parent for path in (copy / "consumequeue").glob("*/*/*")}
    ) == [path.relative_to(store) for path in queues]


def test_the_copy_is_served_and_takes_puts(tmp_path: Path) -> None:
    store, copy = copied("08-halt-async", tmp_path / "store"), tmp_path / "copy"
    converted(store, copy, 16_384)
    assert served(copy) == len(records_of(store))


def test_prepared_offsets_follow_their_half_messages(tmp_path: Path) -> None:
    store, copy = copied("05-transactions-delays-light-queues", tmp_path / "store"), tmp_path / "copy"
    converted(store, copy, largest(store))
    pairs = list(zip(records_of(store), records_of(copy), strict=True))
    moved = {old.offset: new.offset for old, new in pairs}
    ended = [(old, new) for old, new in pairs if old.sys_flag & 12 and old.prepared_transaction_offset]
    assert any(new.prepared_transaction_offset != old.prepared_transaction_offset for old, new in ended)
    assert all(
        new.prepared_transaction_offset == moved.get(old.prepared_transaction_offset, old.prepared_transaction_offset)
        for old, new in ended
    )


@pytest.mark.parametrize("trailer", [False, True])
def test_deleted_topics_stay_deleted_and_the_floor_fits(trailer: bool, tmp_path: Path) -> None:
    store, copy = tmp_path / "store", tmp_path / "copy"
    config = MessageStoreConfig(
        mapped_file_size_commit_log=4096,
        mapped_file_size_consume_queue=400,
        max_hash_slot_num=10,
        max_index_num=20,
        record_checksum="record" if trailer else "body",
    )
    with MessageStore.open(store, config) as opened:
        for number in range(30):
            opened.put(Message("T", b"%03d" % number, queue_id=0))
        opened.put(Message("U", b"keeps", queue_id=0))
        opened._reput.drain()
        assert opened.clean_unused_topics({"U"}) == ("T",)
        for number in range(100, 105):
            opened.put(Message("T", b"%03d" % number, queue_id=0))
    done = converted(store, copy, 1000)
    assert done.audit.verdict == "holds"
    with MessageStore.open(copy, replace(config, mapped_file_size_commit_log=1000)) as opened:
        assert opened.read_only_reason is None
        assert opened.max_offset_in_queue("T", 0) == 5
        with opened.get_message("T", 0, 0, max_msg_nums=32) as got:
            assert [each.message().body for each in got.messages] == [b"%03d" % number for number in range(100, 105)]
    back = tmp_path / "back"
    assert converted(copy, back, 4096).audit.verdict == "holds"
    assert [each.raw for each in records_of(back)] == [each.raw for each in records_of(store)]


def test_a_size_without_room_for_a_record_is_refused(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    with pytest.raises(RepairRefused, match="--log-file-bytes"):
        converted(store, tmp_path / "copy", largest(store) - 1)
    assert not (tmp_path / "copy").exists()


def test_a_store_with_quarantine_is_refused(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    (store / "quarantine").mkdir()
    (store / "quarantine" / f"{0:020}.0").write_bytes(b"bytes")
    with pytest.raises(RepairRefused, match="quarantine"):
        converted(store, tmp_path / "copy", 1 << 20)


def test_lost_records_have_fillers_and_damaged_bytes_are_refused(tmp_path: Path) -> None:
    store, copy = copied("08-halt-async", tmp_path / "store"), tmp_path / "copy"
    first = records_of(store)[2]
    overwrite(store / "commitlog" / f"{0:020}", first.offset, bytes(first.size_bytes))
    assert converted(store, copy, 1 << 20).audit.verdict == "holds"
    assert len(records_of(copy)) == len(records_of(store)) + 1
    overwrite(store / "commitlog" / f"{0:020}", first.offset + 100, b"damage")
    with pytest.raises(RepairRefused, match="without --log-file-bytes"):
        converted(store, tmp_path / "other", 1 << 20)
    assert not (tmp_path / "other").exists()


def test_the_own_size_converts_nothing(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    prepared = prepare_repair(store, tmp_path / "copy", SettingsOverride(), log_file_bytes=look(store).file_bytes)
    assert prepared.plan.log_file_bytes is None
    assert audit_store(store).verdict == "holds"
