"""Test that a mended copy keeps and serves every intact record of a damaged store."""

from __future__ import annotations

import os
import random
import shutil
import struct
import tempfile
from pathlib import Path

import pytest

from tests.pipeline.test_repair import mended, records_of, tree
from tests.support.pipeline.damages import damaged
from tests.support.pipeline.handmade import HandmadeStore, copied, overwrite
from tornpage import GetStatus, Message, MessageStore, MessageStoreConfig
from tornpage.pipeline.audit.audit import audit_store
from tornpage.pipeline.repairing import RepairDone, carry_out, prepare_repair
from tornpage.pipeline.repairing.fillers import LOST_PROPERTY, Filler, Neighbour, changed, filler_bytes
from tornpage.properties.decode.record import Record, decode_record
from tornpage.properties.decode.store import look
from tornpage.properties.judge.shape import SettingsOverride

STORES = (
    "01-plain-ascii",
    "02-topics-unicode-limits",
    "03-rollover-blanks-retention",
    "04-hosts-and-batches",
    "06-index-files-collisions",
    "08-halt-async",
)
LOG_FILE = "commitlog/00000000000000000000"


def intact(copy: Path) -> list[Record]:
    return [each for each in records_of(copy) if LOST_PROPERTY not in each.properties]


def body_of(record: Record) -> tuple[int, bytes, bytes, bytes]:
    """Return what no correction changes."""
    return record.offset, record.body, record.properties[: len(record.properties) - 20], record.store_host[0].encode()


def served(copy: Path) -> int:
    """Open a copy read-write and read every queue; return how many messages were served."""
    queue_files = sorted((copy / "consumequeue").glob("*/*/*"))
    config = MessageStoreConfig(
        mapped_file_size_commit_log=look(copy).file_bytes,
        mapped_file_size_consume_queue=queue_files[0].stat().st_size if queue_files else 6_000_000,
        record_checksum="body",
        max_hash_slot_num=100,
        max_index_num=120,
    )
    seen: set[int] = set()
    with MessageStore.open(copy, config) as store:
        for topic, queue_id in store.queues():
            at, end = store.min_offset_in_queue(topic, queue_id), store.max_offset_in_queue(topic, queue_id)
            while at < end:
                with store.get_message(topic, queue_id, at, max_msg_nums=32) as got:
                    if got.status is GetStatus.FOUND:
                        seen |= {each.offset for each in got.messages}
                    assert got.next_begin_offset > at
                    at = got.next_begin_offset
            result = store.put(Message(topic, b"one more", queue_id=queue_id))
            assert result.queue_offset == end
    return len(seen)


def keeps_all(name: str, seed: int, directory: Path) -> RepairDone:
    root = copied(name, directory / "store")
    said = damaged(root, seed)
    as_it_was = tree(root)
    before = {each.offset: each for each in records_of(root)}
    copy = directory / "copy"
    prepared = prepare_repair(root, copy, SettingsOverride())
    done = carry_out(prepared.plan, prepared.rows)
    assert tree(root) == as_it_was
    after = {each.offset: each for each in intact(copy)}
    assert set(before) <= set(after), (said, sorted(set(before) - set(after)))
    touched = {each.offset for each in prepared.plan.salvage.corrections}
    touched |= set(prepared.plan.salvage.numbering.without_place)
    for offset, record in before.items():
        if offset in touched:
            assert body_of(after[offset])[:2] == body_of(record)[:2]
        else:
            assert after[offset].raw == record.raw
    units = {int(each) for each in prepared.rows.wanted["offset"]}
    shutil.copytree(copy, directory / "opened")
    assert served(directory / "opened") == len(units), said
    return done


@pytest.mark.slow
@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("seed", range(6))
def test_copy_has_every_intact_record_and_serves_it(name: str, seed: int, tmp_path: Path) -> None:
    keeps_all(name, seed, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
def test_copy_has_every_intact_record_over_500_damages(part: int) -> None:
    for seed in range(1 + 50 * part, 51 + 50 * part):
        with tempfile.TemporaryDirectory() as directory:
            keeps_all(random.Random(seed).choice(STORES), seed, Path(directory))


# ---- single damages -----------------------------------------------------------------------------------------------


def put_many(root: Path, count: int = 12, **settings: int | str) -> list[int]:
    """Make a store with two queues, and close it; return the offsets of its records."""
    config = MessageStoreConfig(mapped_file_size_commit_log=8192, mapped_file_size_consume_queue=400, **settings)  # type: ignore[arg-type]
    with MessageStore.open(root, config) as store:
        return [
            store.put(Message("T", b"x" * 700, queue_id=number % 2, properties={"KEYS": f"k{number}"})).offset
            for number in range(count)
        ]


def test_filler_has_the_number_of_the_lost_record(tmp_path: Path) -> None:
    offsets = put_many(tmp_path / "store")
    overwrite(tmp_path / "store" / LOG_FILE, offsets[4] + 100, b"\xff\xff")
    done = mended(tmp_path / "store", tmp_path / "copy")
    [filler] = [each for each in records_of(tmp_path / "copy") if LOST_PROPERTY in each.properties]
    assert (filler.offset, filler.topic, filler.queue_id, filler.queue_offset) == (offsets[4], b"T", 0, 2)
    assert set(filler.body) == {32}
    assert (done.figures["kept_records"], done.figures["lost_messages"], done.figures["filler_records"]) == (11, 1, 1)
    with MessageStore.open(
        tmp_path / "copy", MessageStoreConfig(mapped_file_size_commit_log=8192, mapped_file_size_consume_queue=400)
    ) as store:
        with store.get_message("T", 0, 2) as got:
            message = got.messages[0].message()
        assert message.properties == {"TORNPAGE_LOST": "true"}
        assert store.max_offset_in_queue("T", 0) == 6


@pytest.mark.parametrize("part", ["consumequeue", "index"])
def test_header_of_a_damaged_record_names_it_without_queues(tmp_path: Path, part: str) -> None:
    offsets = put_many(tmp_path / "store")
    overwrite(tmp_path / "store" / LOG_FILE, offsets[4] + 100, b"\xff\xff")
    shutil.rmtree(tmp_path / "store" / part)
    mended(tmp_path / "store", tmp_path / "copy")
    [filler] = [each for each in records_of(tmp_path / "copy") if LOST_PROPERTY in each.properties]
    assert (filler.topic, filler.queue_id, filler.queue_offset) == (b"T", 0, 2)


def test_hole_of_unknown_records_is_filled_by_what_no_queue_shows(tmp_path: Path) -> None:
    """Without queues only the numbers of lost messages and their hole are known."""
    offsets = put_many(tmp_path / "store")
    overwrite(tmp_path / "store" / LOG_FILE, offsets[4], bytes(offsets[7] - offsets[4]))
    shutil.rmtree(tmp_path / "store/consumequeue")
    plan = prepare_repair(tmp_path / "store", tmp_path / "copy", SettingsOverride()).plan
    assert [(each.topic, each.queue_id, each.first, each.last) for each in plan.salvage.lost] == [
        ("T", 0, 2, 3),
        ("T", 1, 2, 2),
    ]
    assert sorted((each.topic, each.queue_id, each.queue_offset) for each in plan.salvage.fillers) == [
        ("T", 0, 2),
        ("T", 0, 3),
        ("T", 1, 2),
    ]


def test_missing_file_becomes_fillers_where_queues_know_its_records(tmp_path: Path) -> None:
    offsets = put_many(tmp_path / "store", 30)
    (tmp_path / "store/commitlog/00000000000000008192").unlink()
    done = mended(tmp_path / "store", tmp_path / "copy")
    lost = [each for each in offsets if 8192 <= each < 16384]
    fillers = [each for each in records_of(tmp_path / "copy") if LOST_PROPERTY in each.properties]
    assert [each.offset for each in fillers] == lost
    assert (done.figures["kept_records"], done.figures["lost_messages"]) == (30 - len(lost), len(lost))


def test_missing_file_of_unknown_records_becomes_an_end_mark(tmp_path: Path) -> None:
    put_many(tmp_path / "store", 30)
    (tmp_path / "store/commitlog/00000000000000008192").unlink()
    shutil.rmtree(tmp_path / "store/consumequeue")
    mended(tmp_path / "store", tmp_path / "copy")
    stored = (tmp_path / "copy/commitlog/00000000000000008192").read_bytes()
    assert len(stored) == 8192
    assert all(
        LOST_PROPERTY in each.properties for each in records_of(tmp_path / "copy") if 8192 <= each.offset < 16384
    )


def test_records_past_the_end_of_a_clean_log_keep_their_numbers(tmp_path: Path) -> None:
    """Without fillers a put would give out a queue offset that a consumer has passed already."""
    offsets = put_many(tmp_path / "store", 30)
    for path in sorted((tmp_path / "store/commitlog").iterdir())[2:]:
        path.unlink()
    mended(tmp_path / "store", tmp_path / "copy")
    fillers = [each for each in records_of(tmp_path / "copy") if LOST_PROPERTY in each.properties]
    assert [each.offset for each in fillers] == [each for each in offsets if each >= 16384]


def test_swapped_log_files_are_read_at_the_offsets_of_their_records(tmp_path: Path) -> None:
    offsets = put_many(tmp_path / "store", 30)
    one, other = (tmp_path / "store/commitlog" / f"{base:020}" for base in (0, 8192))
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)
    misnamed = [each.file for each in audit_store(tmp_path / "store").findings if each.code == "CL_MISNAMED"]
    assert misnamed == [f"commitlog/{0:020}", f"commitlog/{8192:020}"]
    plan = prepare_repair(tmp_path / "store", tmp_path / "plan", SettingsOverride()).plan
    assert plan.document()["misnamedFiles"] == {
        f"commitlog/{0:020}": f"commitlog/{8192:020}",
        f"commitlog/{8192:020}": f"commitlog/{0:020}",
    }
    done = mended(tmp_path / "store", tmp_path / "copy")
    assert [each.offset for each in records_of(tmp_path / "copy")] == offsets
    assert done.figures["lost_messages"] == 0


def test_log_file_with_a_foreign_name_stands_in_for_the_missing_one(tmp_path: Path) -> None:
    offsets = put_many(tmp_path / "store", 30)
    path = tmp_path / "store/commitlog" / f"{8192:020}"
    path.rename(path.with_name(f"{path.name}.bak"))
    mended(tmp_path / "store", tmp_path / "copy")
    assert [each.offset for each in records_of(tmp_path / "copy")] == offsets


def test_topic_that_was_deleted_and_used_again_keeps_its_new_messages(tmp_path: Path) -> None:
    """RocketMQ counts from 0 again while the log still holds the old records."""
    store = HandmadeStore(tmp_path / "store")
    for number in range(5):
        store.put("T", 0, number, dispatched=False)
    new = [store.put("T", 0, number)[0] for number in range(3)]
    done = mended(store.write(), tmp_path / "copy")
    units = (tmp_path / "copy/consumequeue/T/0" / ("0" * 20)).read_bytes()
    assert [offset for offset, size, _ in struct.iter_unpack(">qiq", units) if size] == new
    assert len(records_of(tmp_path / "copy")) == 8
    assert done.figures["records_without_queue"] == 0
    assert served(tmp_path / "copy") == 3


def test_store_with_a_topic_used_again_is_not_damaged(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path / "store")
    for number in range(5):
        store.put("T", 0, number, dispatched=False)
    for number in range(3):
        store.put("T", 0, number)
    audit = audit_store(store.write())
    assert (audit.verdict, [each.code for each in audit.findings if each.code.startswith("CQ")]) == (
        "holds",
        ["CQ_TOPIC_REUSED"],
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 9, 2**40, 2**63 - 1, -1])
@pytest.mark.parametrize("has_queues", [True, False])
@pytest.mark.parametrize("index", [0, 5, 11])
def test_wrong_queue_offset_is_corrected(tmp_path: Path, number: int, has_queues: bool, index: int) -> None:
    offsets = put_many(tmp_path / "store", record_checksum="body")
    right = records_of(tmp_path / "store")
    base = offsets[index] - offsets[index] % 8192
    log = tmp_path / "store/commitlog" / f"{base:020}"
    overwrite(log, offsets[index] - base + 20, struct.pack(">q", number))
    if not has_queues:
        shutil.rmtree(tmp_path / "store/consumequeue")
    mended(tmp_path / "store", tmp_path / "copy")
    assert records_of(tmp_path / "copy") == right
    assert served(tmp_path / "copy") == 12


@pytest.mark.parametrize("has_queues", [True, False])
@pytest.mark.parametrize(
    ("at", "content"),
    [(12, struct.pack(">i", 5)), (88 + 700 + 1, b"\xd4"), (88 + 700 + 1, b"V"), (39, b"\x04")],
    ids=["queue id", "no text", "another topic", "prepared"],
)
def test_wrong_header_is_corrected(tmp_path: Path, at: int, content: bytes, has_queues: bool) -> None:
    offsets = put_many(tmp_path / "store", record_checksum="body")
    right = records_of(tmp_path / "store")
    overwrite(tmp_path / "store" / LOG_FILE, offsets[5] + at, content)
    if not has_queues:
        shutil.rmtree(tmp_path / "store/consumequeue")
    mended(tmp_path / "store", tmp_path / "copy")
    assert records_of(tmp_path / "copy") == right
    assert served(tmp_path / "copy") == 12


def test_quarantined_records_go_back_to_their_places(tmp_path: Path) -> None:
    offsets = put_many(tmp_path / "store", 9)
    log = tmp_path / "store" / LOG_FILE
    whole = log.read_bytes()
    (tmp_path / "store/quarantine").mkdir()
    (tmp_path / "store/quarantine" / f"{offsets[4]:020}.0").write_bytes(whole[offsets[4] :])
    overwrite(log, offsets[4], bytes(8192 - offsets[4]))
    for part in ("consumequeue", "config", "checkpoint"):
        path = tmp_path / "store" / part
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    prepared = prepare_repair(tmp_path / "store", tmp_path / "copy", SettingsOverride(), with_quarantine=True)
    done = carry_out(prepared.plan, prepared.rows)
    assert (done.figures["restored_records"], done.figures["lost_messages"]) == (5, 0)
    assert [each.offset for each in records_of(tmp_path / "copy")] == offsets
    assert not (tmp_path / "copy/quarantine").exists()
    without = mended(tmp_path / "store", tmp_path / "without")
    assert without.figures["kept_records"] == 4
    assert len(os.listdir(tmp_path / "without/quarantine")) == 1


def test_quarantined_record_whose_place_is_taken_stays_in_quarantine(tmp_path: Path) -> None:
    offsets = put_many(tmp_path / "store", 9)
    log = tmp_path / "store" / LOG_FILE
    (tmp_path / "store/quarantine").mkdir()
    other = records_of(tmp_path / "store")[4]
    moved = changed(other.raw, queue_offset=7)
    moved = moved[:28] + struct.pack(">q", offsets[4] + 10) + moved[36:]
    (tmp_path / "store/quarantine" / f"{offsets[4] + 10:020}.0").write_bytes(moved)
    assert decode_record(moved, offset=offsets[4] + 10, room_bytes=8192)
    prepared = prepare_repair(tmp_path / "store", tmp_path / "copy", SettingsOverride(), with_quarantine=True)
    done = carry_out(prepared.plan, prepared.rows)
    assert done.figures["restored_records"] == 0
    assert (tmp_path / "copy/quarantine" / f"{offsets[4] + 10:020}.0").read_bytes() == moved
    assert log.read_bytes() == (tmp_path / "copy" / LOG_FILE).read_bytes()


@pytest.mark.parametrize("size", [92, 93, 110, 130, 5000])
@pytest.mark.parametrize("topic", [None, "T"])
@pytest.mark.parametrize("has_trailer", [True, False])
def test_filler_is_a_valid_record_of_its_size(size: int, topic: str | None, has_trailer: bool) -> None:
    near = Neighbour(1_700_000_000_000, bytes((127, 0, 0, 1, 0, 0, 42, 159)), has_trailer)
    stored = filler_bytes(Filler(4096, size, topic, 3, 17), near)
    record = decode_record(stored + bytes(8), offset=4096)
    assert isinstance(record, Record)
    assert (record.size_bytes, record.store_timestamp, record.store_host) == (
        size,
        1_700_000_000_000,
        ("127.0.0.1", 10911),
    )
    assert (record.sys_flag == 0) == (topic is not None)
