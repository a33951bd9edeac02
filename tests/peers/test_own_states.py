"""Test what a crash state of a peer's own writes lacks."""

from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.pipeline.handmade import copied
from tornpage.model.operations import Flush, Put
from tornpage.peers.own_histories import OwnHistory, OwnState
from tornpage.peers.rocketmq.installing import Release
from tornpage.properties.decode.record import Record
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import in_flight_writes
from tornpage.properties.judge.image import AcknowledgedRecord, Truth, read_image
from tornpage.properties.judge.judgement import evidence_of, rulings_on
from tornpage.properties.judge.shape import SettingsOverride, look_at
from tornpage.properties.program.case import Settings

ROLLED = Path("03-rollover-blanks-retention")


def state(files: dict[str, bytes], *directories: str) -> OwnState:
    return OwnState(
        Image(frozenset({"/", "/store", *directories}), files), Truth({}, power_loss=True, has_copies=False)
    )


@pytest.fixture
def image(tmp_path: Path) -> tuple[Path, OwnState]:
    """Return a store with several log files, and a state in which every record is due."""
    store = copied(str(ROLLED), tmp_path / "store")
    records = look_at(read_image(store), SettingsOverride()).log.records
    due = {
        each.offset: AcknowledgedRecord(each.offset, each.size_bytes, sha256(each.raw).hexdigest(), flushed=True)
        for each in records
    }
    return store, OwnState(Image(frozenset(), {}), Truth(due, power_loss=True, has_copies=False))


def damaged_at_the_end_of_a_file(store: Path, *, zeros: int) -> list[Record]:
    """Overwrite the end of the second log file with zeros; return the readable records."""
    path = sorted((store / "commitlog").iterdir())[1]
    stored = path.read_bytes()
    path.write_bytes(stored[:-zeros] + bytes(zeros))
    return list(look_at(read_image(store), SettingsOverride()).log.records)


def test_records_past_a_lost_blank_were_not_made_durable(image: tuple[Path, OwnState]) -> None:
    """The bytes of the records were there, and our recovery was charged with the loss."""
    store, own = image
    before = look_at(read_image(store), SettingsOverride()).log
    assert own.lost(before.records) == 0
    second = sorted(before.files)[1]
    last = [each for each in before.records if second <= each.offset < second + before.file_bytes][-1]
    blank = second + before.file_bytes - last.end_offset
    readable = damaged_at_the_end_of_a_file(store, zeros=blank)
    assert readable[-1].offset == last.offset
    lost = len(before.records) - len(readable)
    assert own.lost(readable) == lost > 0
    (store / "checkpoint").write_bytes(b"")  # no flush time, so that the store opens for writing
    (store / "abort").touch()
    with evidence_of(read_image(store), override=SettingsOverride(), truth=own.truth) as evidence:
        assert evidence.is_writable
        [ruling] = [each for each in rulings_on(evidence) if each.contract == 2]
    assert ruling.verdict == "unknown"
    assert f"lacks {lost} records that were flushed" in ruling.sentence


def test_record_with_other_bytes_and_an_image_without_a_log_lose_records(image: tuple[Path, OwnState]) -> None:
    _, own = image
    assert own.lost(()) == len(own.truth.due) > 0
    other = Truth(
        {offset: replace(each, sha256="0" * 64) for offset, each in own.truth.records.items()},
        power_loss=True,
        has_copies=False,
    )
    readable = look_at(read_image(image[0]), SettingsOverride()).log.records
    assert replace(own, truth=other).lost(readable) == len(readable)


@pytest.mark.parametrize(
    ("files", "directories", "is_empty"),
    [
        ({}, (), True),
        ({"/store/config/topics.json": b"{}"}, ("/store/config",), True),
        ({}, ("/store/commitlog",), False),
        ({"/store/lock": b"lock"}, (), False),
    ],
)
def test_image_without_a_sign_of_a_store_is_empty(
    files: dict[str, bytes], directories: tuple[str, ...], is_empty: bool
) -> None:
    assert state(files, *directories).is_empty is is_empty


def test_flush_of_the_recorded_peer_covers_all_files(release: Release) -> None:
    """One call of `CommitLog.flush` covers one file; RocketMQ was charged with the rest."""
    operations = [Put(topic="T", body_bytes=1900, body_kind="random", fill=number) for number in range(30)]
    settings = Settings(disk="journal", sync_flush=False)
    with closing(OwnHistory(release, settings, operations=[*operations, Flush()])) as history:
        assert not history.ended_by
        disk = history.disk("journal")
    pages = [write.name for write in in_flight_writes(disk) if write.name.startswith("page /commitlog/")]
    assert pages == []
    names, _ = disk.visible()
    assert sum(name.startswith("/commitlog/") for name in names) >= 4
