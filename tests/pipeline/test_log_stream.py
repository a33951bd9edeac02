"""Test following a log: every record once, no moving tail, damage reported and passed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.properties.handmade import blank, record
from tornpage.pipeline.readers.log_reader import read_log
from tornpage.pipeline.readers.log_stream import advance, first_offset, parts_between
from tornpage.pipeline.readers.parts import LogPart
from tornpage.pipeline.readers.problems import Problem
from tornpage.properties.decode.files import FileSource

FILE_BYTES = 1000
BEGIN = 3000


class GrowingLog:
    """A log of files of 1,000 bytes that is written byte by byte, as a reader may see it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.rmtree(root, ignore_errors=True)
        (root / "commitlog").mkdir(parents=True)
        self.places: list[int] = []
        self.content = b""

    def add(self, body: bytes) -> None:
        room = FILE_BYTES - len(self.content) % FILE_BYTES
        size = len(record(0, body))
        if size + 8 > room:
            self.content += blank(room)
        self.places.append(BEGIN + len(self.content))
        self.content += record(BEGIN + len(self.content), body)

    def show(self, size_bytes: int, damage: bytes = b"", at: int = 0) -> None:
        """Write the files with this many bytes."""
        shown = bytearray(self.content[:size_bytes])
        shown[at : at + len(damage)] = damage
        for base in range(0, max(1, len(shown)), FILE_BYTES):
            path = self.root / f"commitlog/{BEGIN + base:020}"
            path.write_bytes(bytes(shown[base : base + FILE_BYTES]).ljust(FILE_BYTES, b"\0"))


def rows_between(root: Path, start: int, end: int) -> tuple[list[int], list[Problem]]:
    offsets: list[int] = []
    problems: list[Problem] = []
    for part in parts_between(str(root), start, end):
        found: Any = read_log(part, ("offset",)) if isinstance(part, LogPart) else part.problems
        for each in found:
            if isinstance(each, Problem):
                problems.append(each)
            else:
                offsets += each["offset"].to_pylist()
    return offsets, problems


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_record_comes_once_however_the_log_grows(tmp_path: Path, data: st.DataObject) -> None:
    log = GrowingLog(tmp_path / "store")
    for size in data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=12)):
        log.add(b"x" * size)
    looks = sorted(data.draw(st.lists(st.integers(0, len(log.content)), max_size=8)))
    limit = data.draw(st.sampled_from([None, 1, 400]))
    log.show(0)
    offset, found = first_offset(str(log.root)), []
    for size_bytes in [*looks, *[len(log.content)] * (len(log.places) + 8)]:
        log.show(size_bytes)
        if offset == BEGIN + len(log.content):
            break
        end = advance(str(log.root), offset, bytes_max=limit)
        offsets, problems = rows_between(log.root, offset, end)
        assert problems == []
        found += offsets
        offset = end
    assert found == log.places
    assert offset == BEGIN + len(log.content)


def test_a_half_written_tail_is_not_read(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "store")
    for _ in range(3):
        log.add(b"x" * 50)
    log.show(len(log.content) - 10)
    assert advance(str(log.root), BEGIN) == log.places[2]
    log.show(len(log.content))
    assert advance(str(log.root), log.places[2]) == BEGIN + len(log.content)


def test_damage_is_told_and_left_behind(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "store")
    for _ in range(4):
        log.add(b"x" * 50)
    log.show(len(log.content), b"damage", log.places[1] - BEGIN + 90)
    end = advance(str(log.root), BEGIN)
    assert end == BEGIN + len(log.content)
    offsets, problems = rows_between(log.root, BEGIN, end)
    assert offsets == [log.places[0], *log.places[2:]]
    assert [(each.code, each.position) for each in problems] == [("CL_BAD_RECORD", log.places[1] - BEGIN)]


def test_a_record_that_was_only_read_while_it_was_written_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = GrowingLog(tmp_path / "store")
    for _ in range(4):
        log.add(b"x" * 50)
    log.show(len(log.content), b"half", log.places[1] - BEGIN + 90)
    opened: list[Path] = []

    class Meanwhile(FileSource):
        """The second look sees the whole record."""

        def __init__(self, *arguments: Any, **named: Any) -> None:
            if opened:
                log.show(len(log.content))
            opened.append(arguments[0])
            super().__init__(*arguments, **named)

    monkeypatch.setattr("tornpage.pipeline.readers.log_stream.FileSource", Meanwhile)
    end = advance(str(log.root), BEGIN)
    assert len(opened) > 1
    assert rows_between(log.root, BEGIN, end) == (log.places, [])


def test_files_that_retention_took_are_told(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "store")
    for _ in range(20):
        log.add(b"x" * 200)
    log.show(len(log.content))
    end = advance(str(log.root), BEGIN)
    (log.root / f"commitlog/{BEGIN:020}").unlink()
    assert first_offset(str(log.root)) == BEGIN + FILE_BYTES
    assert advance(str(log.root), BEGIN + 10) == end
    offsets, [problem] = rows_between(log.root, BEGIN, end)
    assert offsets == [place for place in log.places if place >= BEGIN + FILE_BYTES]
    assert (problem.code, problem.size) == ("CL_CUT", FILE_BYTES)
