"""Test following a log that grows, rolls, is torn, is cut and loses its head meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.properties.handmade import blank, record
from tornpage.properties.inspect import Query
from tornpage.properties.inspect.follow import PATIENCE, LogFollower

FILE_BYTES = 4096


class Log:
    """A log written by hand, byte for byte if needed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "commitlog").mkdir(parents=True)
        self.end = 0

    def path(self, offset: int) -> Path:
        return self.directory / "commitlog" / f"{offset - offset % FILE_BYTES:020}"

    def write(self, data: bytes, offset: int) -> None:
        path = self.path(offset)
        stored = bytearray(path.read_bytes() if path.exists() else bytes(FILE_BYTES))
        at = offset % FILE_BYTES
        stored[at : at + len(data)] = data
        path.write_bytes(stored)

    def append(self, body: bytes = b"body", topic: bytes = b"TopicTest") -> int:
        size = len(record(0, body, topic=topic))
        left = FILE_BYTES - self.end % FILE_BYTES
        if size + 8 > left:
            self.write(blank(left)[:8], self.end)
            self.end += left
        offset = self.end
        self.write(record(offset, body, topic=topic), offset)
        self.end += size
        return offset


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "store")


def offsets(follower: LogFollower) -> list[int]:
    return [row["phy"] for row in follower.poll() if row["kind"] == "record"]


def test_it_begins_at_the_end_and_shows_each_record_once(log: Log) -> None:
    log.append()
    follower = LogFollower(log.directory, Query())
    assert follower.poll() == []
    new = [log.append() for _ in range(3)]
    assert offsets(follower) == new
    assert follower.poll() == []
    assert (follower.records, follower.position) == (3, log.end)


def test_it_begins_where_it_is_told_also_inside_a_record(log: Log) -> None:
    every = [log.append(b"x" * 300) for _ in range(30)]
    for offset, first in ((0, 0), (every[3], 3), (every[3] + 1, 3), (every[20] + 200, 20)):
        follower = LogFollower(log.directory, Query(offset=offset))
        assert [*offsets(follower), *offsets(follower)] == every[first:]


def test_it_goes_over_the_ends_of_files(log: Log) -> None:
    follower = LogFollower(log.directory, Query(file_bytes=FILE_BYTES))
    shown: list[int] = []
    written: list[int] = []
    for _ in range(40):
        written.append(log.append(b"y" * 700))
        shown += offsets(follower)
    assert shown == written
    assert log.end > 6 * FILE_BYTES


def test_a_record_that_is_not_whole_yet_waits(log: Log) -> None:
    log.append()
    follower = LogFollower(log.directory, Query())
    stored = record(log.end, b"late" * 50)
    log.write(stored[:100], log.end)
    assert all(follower.poll() == [] for _ in range(PATIENCE + 5))
    log.write(stored, log.end)
    assert offsets(follower) == [log.end]
    assert follower.findings == []


def test_a_place_that_stays_bad_is_shown_and_passed_once_records_follow(log: Log) -> None:
    log.append()
    follower = LogFollower(log.directory, Query())
    bad = log.end
    log.write(b"junk" * 25, bad)
    log.end += 100
    behind = log.append()
    rows = [row for _ in range(PATIENCE + 2) for row in follower.poll()]
    assert [(row["kind"], row["phy"]) for row in rows] == [("bad", bad), ("record", behind)]
    assert [(finding.code, finding.offset) for finding in follower.findings] == [("CL_BAD_RECORD", bad)]


def test_a_log_that_was_cut_meanwhile_is_said_and_followed_on(log: Log) -> None:
    kept = log.append()
    follower = LogFollower(log.directory, Query(offset=0))
    lost = log.append(b"lost" * 10)
    assert offsets(follower) == [kept, lost]
    log.write(bytes(log.end - lost), lost)
    follower.poll()
    log.end = lost
    again = log.append(b"another")
    assert offsets(follower) == [again]
    assert [finding.code for finding in follower.findings] == ["LOOK_LOG_CUT"]


def test_files_that_retention_took_are_stepped_over(log: Log) -> None:
    every = [log.append(b"z" * 900) for _ in range(12)]
    follower = LogFollower(log.directory, Query(offset=0))
    log.path(0).unlink()
    assert offsets(follower) == [offset for offset in every if offset >= FILE_BYTES]
    assert [finding.code for finding in follower.findings] == ["CL_FILE_GONE"]


def test_filters_hold_and_bytes_are_shown(log: Log) -> None:
    follower = LogFollower(log.directory, Query(topic="Wanted", hex=True, file_bytes=FILE_BYTES))
    log.append()
    wanted = log.append(topic=b"Wanted")
    rows = follower.poll()
    assert [row["phy"] for row in rows] == [wanted]
    assert b"".join(bytes.fromhex(field["bytes"]) for field in rows[0]["hex"]) == record(wanted, topic=b"Wanted")
    assert follower.records == 2


def test_a_directory_that_vanishes_ends_nothing(log: Log) -> None:
    log.append()
    follower = LogFollower(log.directory, Query(offset=0))
    for path in (log.directory / "commitlog").iterdir():
        path.unlink()
    (log.directory / "commitlog").rmdir()
    assert follower.poll() == []
