"""A copy keeps every intact record of a damaged store at its offset, audits clean, and our store serves all of it."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.pipeline.damages import damaged
from tests.pipeline.handmade import copied
from tests.pipeline.test_repair import records_of, tree
from tornpage import GetStatus, Message, MessageStore, MessageStoreConfig
from tornpage.pipeline.repairing import RepairDone, carry_out, prepare_repair
from tornpage.pipeline.repairing.fillers import LOST_PROPERTY
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import look
from tornpage.properties.judge.shape import Given

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
    """Open a copy read-write and read every queue to its end; return how many messages were served."""
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
    prepared = prepare_repair(root, copy, Given())
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
