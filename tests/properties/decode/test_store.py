"""Test the audit of a store directory: findings, severities, verdicts, and no change."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.properties.handmade import DATA, blank, golden_dirs, record, vectors
from tornpage.properties.decode import judge as judging
from tornpage.properties.decode.files import is_locked_elsewhere
from tornpage.properties.decode.findings import Finding, verdict_of
from tornpage.properties.decode.judge import LogJudge
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import Checkpoint, Floor, LogFile, iter_items, look, read_checkpoint, read_floor
from tornpage.properties.decode.walk import Zeros

FILE_BYTES = 4096
PER_FILE = 10


def make_store(path: Path, *, files: int = 3, unclean: bool = False, floor: int | None = None) -> Path:
    """Build a store of full files and one in use; every record has 200 bytes of body."""
    log = path / "commitlog"
    log.mkdir(parents=True)
    (path / "config").mkdir()
    for index in range(files):
        base = index * FILE_BYTES
        stored = b""
        for _ in range(PER_FILE if index < files - 1 else PER_FILE // 2):
            stored += record(base + len(stored), b"x" * 200)
        left = FILE_BYTES - len(stored)
        (log / f"{base:020}").write_bytes(stored + (blank(left) if index < files - 1 else bytes(left)))
    checkpoint = struct.pack(">qqq", 1_700_000_000_001, 1_700_000_000_001, 0)
    (path / "checkpoint").write_bytes(checkpoint.ljust(4096, b"\0"))
    (path / "lock").write_bytes(b"lock")
    if unclean:
        (path / "abort").touch()
    if floor is not None:
        (path / "config" / "durableFloor").write_bytes(floor_bytes(floor))
    return path


RECORD_BYTES = len(record(0, b"x" * 200))
LAST = f"commitlog/{2 * FILE_BYTES:020}"
LAST_BASE = 2 * FILE_BYTES


def floor_bytes(offset: int) -> bytes:
    head = b"TPFLOOR1" + struct.pack(">qq", offset, FILE_BYTES)
    return (head + struct.pack(">I", zlib.crc32(head))).ljust(512, b"\0")


def poke(store: Path, file: str, position: int, value: bytes) -> None:
    with (store / file).open("r+b") as stream:
        stream.seek(position)
        stream.write(value)


def judged(store: Path, **options: Any) -> tuple[Finding, ...]:
    view = look(store, **options)
    judge = LogJudge(view)
    for located in iter_items(view, on_file=judge.see_file_end):
        judge.see(located)
    return judge.finish()


def brief(findings: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    return [(finding.code, finding.severity, finding.file) for finding in findings]


def tree(path: Path) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for each in sorted([path, *path.rglob("*")]):
        status = each.stat()
        content = each.read_bytes() if each.is_file() else b""
        found[str(each)] = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_mode, content)
    return found


@contextmanager
def held_lock(store: Path) -> Iterator[None]:
    """Hold the lock as a store does: an OFD lock on byte 0 of another open file description."""
    with (store / "lock").open("r+b") as stream:
        question = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        fcntl.fcntl(stream.fileno(), fcntl.F_OFD_SETLK, question)
        yield


def test_sound_store_has_no_findings(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    assert judged(store) == ()
    view = look(store)
    assert [file.base_offset for file in view.files] == [0, FILE_BYTES, 2 * FILE_BYTES]
    assert (view.file_bytes, view.is_unclean, view.live, view.floor) == (FILE_BYTES, False, False, None)
    assert view.checkpoint == Checkpoint(1_700_000_000_001, 1_700_000_000_001, 0)


@pytest.mark.parametrize("case", golden_dirs(), ids=lambda case: case.name)
def test_looking_changes_nothing(case: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(case / "store", store)
    before = tree(store)
    judged(store)
    with held_lock(store):
        judged(store)
    assert tree(store) == before


def test_looking_works_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store(tmp_path / "store")
    opened: list[int] = []
    real = os.open

    def only_reading(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        opened.append(flags)
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", only_reading)
    judged(store)
    assert opened
    assert all(flags & (os.O_ACCMODE | os.O_CREAT | os.O_TRUNC) == os.O_RDONLY for flags in opened)


@pytest.mark.parametrize(
    ("unclean", "floor", "severity", "verdict"),
    [
        (False, None, "damage", "broken"),
        (True, None, "tear", "unknown"),
        (True, LAST_BASE + RECORD_BYTES, "tear", "unknown"),
        (True, LAST_BASE + 2 * RECORD_BYTES, "damage", "broken"),
        (False, LAST_BASE + RECORD_BYTES, "damage", "broken"),
    ],
)
def test_bad_record_is_tear_or_damage(
    tmp_path: Path, unclean: bool, floor: int | None, severity: str, verdict: str
) -> None:
    store = make_store(tmp_path / "store", unclean=unclean, floor=floor)
    poke(store, LAST, RECORD_BYTES + 100, b"YYYY")
    findings = judged(store)
    at_risk = [("CL_RECORDS_AT_RISK", "note", LAST)] if severity == "tear" else []
    assert brief(findings) == [("CL_BAD_RECORD", severity, LAST), *at_risk]
    assert findings[0].offset == LAST_BASE + RECORD_BYTES
    assert "3 valid records after it" in findings[0].message
    assert verdict_of(findings) == verdict


def test_bad_tail_of_a_live_store_is_moving_and_a_bad_middle_is_not(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    with held_lock(store):
        assert look(store).live
        assert brief(judged(store)) == [("CL_TAIL_MOVING", "note", LAST)]
        poke(store, LAST, 4 * RECORD_BYTES + 100, b"Y")
        findings = judged(store)
        assert brief(findings) == [("CL_TAIL_MOVING", "note", LAST)]
        assert findings[0].offset == LAST_BASE + 4 * RECORD_BYTES
        assert verdict_of(findings) == "unknown"
        poke(store, LAST, 100, b"Y")
        assert verdict_of(judged(store)) == "broken"
    assert not look(store).live


def test_place_that_was_bad_only_while_it_was_written_is_no_finding(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    poke(store, LAST, 100, b"Y")
    with held_lock(store):
        view = look(store)
        judge = LogJudge(view)
        for located in iter_items(view):
            judge.see(located)
        poke(store, LAST, 100, b"x")  # the writer has finished meanwhile
        assert brief(judge.finish()) == [("CL_TAIL_MOVING", "note", LAST)]


def test_file_that_changes_while_it_is_read_leaves_the_verdict_open(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    poke(store, LAST, 4 * RECORD_BYTES + 100, b"Y")
    view = look(store)
    judge = LogJudge(view)
    for located in iter_items(view, on_file=judge.see_file_end):
        if located.file == LAST and isinstance(located.item, Record):
            os.utime(store / LAST, ns=(1, located.item.offset))
        judge.see(located)
    findings = judge.finish()
    assert brief(findings) == [("CL_TAIL_MOVING", "note", LAST)]
    assert verdict_of(findings) == "unknown"


def test_file_that_shrinks_or_vanishes_while_it_is_read_raises_nothing(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    view = look(store)
    judge = LogJudge(view)
    for located in iter_items(view, on_file=judge.see_file_end):
        if located.item.offset == 0:
            os.truncate(store / LAST, RECORD_BYTES + 10)
            (store / view.files[1].label).unlink()
        judge.see(located)
    findings = judge.finish()
    assert ("CL_FILE_GONE", "note", view.files[1].label) in brief(findings)
    assert verdict_of(findings) != "holds"


def test_java_style_lock_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_bytes(b"lock")
    assert not is_locked_elsewhere(path)
    child = os.fork()
    ready, go = tmp_path / "ready", tmp_path / "go"
    if child == 0:
        stream = path.open("r+b")
        fcntl.lockf(stream, fcntl.LOCK_EX, 1, 0)
        ready.touch()
        while not go.exists():
            os.sched_yield()
        os._exit(0)
    try:
        while not ready.exists():
            os.sched_yield()
        assert is_locked_elsewhere(path)
    finally:
        go.touch()
        os.waitpid(child, 0)
    assert not is_locked_elsewhere(tmp_path / "none")


def test_zeros_inside_the_log_are_bytes_beyond_its_end(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    poke(store, LAST, 2 * RECORD_BYTES, bytes(RECORD_BYTES))
    findings = judged(store)
    assert brief(findings) == [("CL_BYTES_BEYOND_END", "damage", LAST)]
    (store / "abort").touch()
    assert brief(judged(store)) == [("CL_BYTES_BEYOND_END", "tear", LAST), ("CL_RECORDS_AT_RISK", "note", LAST)]


def test_left_overs_without_a_record_are_a_note(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    poke(store, LAST, FILE_BYTES - 100, b"left over")
    assert brief(judged(store)) == [("CL_BYTES_BEYOND_END", "note", LAST)]
    assert verdict_of(judged(store)) == "holds"


def test_zero_tail_before_a_file_with_records(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    middle = f"commitlog/{FILE_BYTES:020}"
    poke(store, middle, 3 * RECORD_BYTES, bytes(FILE_BYTES - 3 * RECORD_BYTES))
    findings = judged(store)
    assert brief(findings) == [("CL_BYTES_BEYOND_END", "damage", middle)]
    assert findings[0].offset == FILE_BYTES + 3 * RECORD_BYTES
    assert f"{PER_FILE // 2} valid records after it" in findings[0].message


def test_zero_files_made_ahead_are_fine(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    for index in (3, 4):
        (store / f"commitlog/{index * FILE_BYTES:020}").write_bytes(bytes(FILE_BYTES))
    assert judged(store) == ()


def test_file_findings(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", files=5)
    names = [f"commitlog/{index * FILE_BYTES:020}" for index in range(6)]
    (store / names[5]).touch()
    assert brief(judged(store)) == [("CL_ZERO_LENGTH", "note", names[5])]
    (store / "abort").touch()
    assert brief(judged(store)) == [("CL_ZERO_LENGTH", "tear", names[5])]
    (store / names[5]).unlink()
    (store / "abort").unlink()
    (store / "commitlog" / "notes.txt").write_bytes(b"hello")
    (store / "commitlog" / f"{9 * FILE_BYTES:020}").mkdir()
    (store / "commitlog" / ("\N{ARABIC-INDIC DIGIT ZERO}" * 20)).write_bytes(b"")
    (store / "commitlog" / ("9" * 20)).write_bytes(b"")
    assert {code for code, _, _ in brief(judged(store))} == {"CL_STRAY_FILE"}
    assert verdict_of(judged(store)) == "holds"
    shutil.rmtree(store / "commitlog" / f"{9 * FILE_BYTES:020}")
    os.truncate(store / names[1], 0)
    with (store / names[2]).open("ab") as stream:
        stream.write(b"more")
    os.truncate(store / names[3], 1000)
    found = set(brief(judged(store)))
    assert ("CL_ZERO_LENGTH", "damage", names[1]) in found
    assert ("CL_MIXED_SIZES", "damage", names[2]) in found
    assert ("CL_SHORT_FILE", "damage", names[3]) in found


def test_gap_and_misaligned_names(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", files=4)
    (store / f"commitlog/{FILE_BYTES:020}").unlink()
    assert brief(judged(store)) == [("CL_GAP", "damage", LAST)]
    only = make_store(tmp_path / "one", files=1)
    (only / f"commitlog/{0:020}").rename(only / f"commitlog/{100:020}")
    assert ("CL_MISALIGNED", "damage", f"commitlog/{100:020}") in brief(judged(only))


def test_configured_size_beats_the_usual_one(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", files=1)
    codes = [finding.code for finding in judged(store, file_bytes=2 * FILE_BYTES)]
    assert codes == ["CL_SHORT_FILE"]


@pytest.mark.parametrize("content", [b"", b"x", os.urandom(FILE_BYTES), b"\xda\xa3\x20\xa7" * (FILE_BYTES // 4)])
def test_foreign_file_of_any_content_raises_nothing(tmp_path: Path, content: bytes) -> None:
    store = make_store(tmp_path / "store")
    (store / f"commitlog/{FILE_BYTES:020}").write_bytes(content)
    assert verdict_of(judged(store)) == "broken"


def test_missing_log(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    shutil.rmtree(store / "commitlog")
    assert brief(judged(store)) == [("CL_MISSING", "note", "commitlog")]
    queue = store / "consumequeue" / "T" / "0"
    queue.mkdir(parents=True)
    (queue / f"{0:020}").write_bytes(bytes(100))
    assert brief(judged(store)) == [("CL_MISSING", "damage", "commitlog")]


def test_log_that_ends_below_the_floor_is_damage(tmp_path: Path) -> None:
    end = LAST_BASE + PER_FILE // 2 * RECORD_BYTES
    store = make_store(tmp_path / "store", unclean=True, floor=end)
    assert judged(store) == ()
    (store / "config" / "durableFloor").write_bytes(floor_bytes(end + 1))
    assert brief(judged(store)) == [("CL_ENDS_BELOW_FLOOR", "damage", "commitlog")]


def test_floor_is_read(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", floor=0x0102030405060708)
    assert read_floor(store) == Floor(0x0102030405060708, FILE_BYTES)
    stored = floor_bytes(7)
    head = "5450464c4f4f52310000000000000007" + f"{FILE_BYTES:016x}"
    assert stored[:28].hex() == head + f"{zlib.crc32(stored[:24]):08x}"
    for wrong in (b"", stored[:-1], stored + b"\0", b"X" + stored[1:], stored[:15] + b"\x08" + stored[16:], bytes(512)):
        (store / "config" / "durableFloor").write_bytes(wrong)
        findings: list[Finding] = []
        assert read_floor(store, findings) is None
        assert [finding.code for finding in findings] == ["FLOOR_UNREADABLE"]
    (store / "config" / "durableFloor").unlink()
    findings = []
    assert read_floor(store, findings) is None
    assert findings == []


def test_checkpoint_vector_and_findings(tmp_path: Path) -> None:
    (vector,) = vectors("checkpoint")
    path = tmp_path / "checkpoint"
    path.write_bytes(bytes.fromhex(vector["hex"]).ljust(vector["sizeBytes"], b"\0"))
    expected = Checkpoint(vector["physicTimestamp"], vector["logicsTimestamp"], vector["indexTimestamp"])
    assert read_checkpoint(tmp_path) == expected
    for content, code in ((b"", "CP_BAD_SIZE"), (bytes(5000), "CP_BAD_SIZE"), (b"\xff" * 4096, "CP_NEGATIVE_TIME")):
        path.write_bytes(content)
        findings: list[Finding] = []
        read_checkpoint(tmp_path, findings)
        assert [finding.code for finding in findings] == [code]
    path.unlink()
    findings = []
    assert read_checkpoint(tmp_path, findings) is None
    assert [finding.code for finding in findings] == ["CP_MISSING"]


def test_checkpoint_ahead_of_the_log_is_a_note(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    poke(store, "checkpoint", 0, struct.pack(">q", 1_800_000_000_000))
    assert brief(judged(store)) == [("CP_AHEAD_OF_LOG", "note", "checkpoint")]


def test_items_from_an_offset_begin_with_the_one_that_holds_it(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    view = look(store)
    every = [located.item for located in iter_items(view)]
    for offset in (0, 1, RECORD_BYTES, RECORD_BYTES + 150, FILE_BYTES - 1, FILE_BYTES, LAST_BASE + 1, 3 * FILE_BYTES):
        got = [located.item for located in iter_items(view, from_offset=offset)]
        assert got == every[len(every) - len(got) :]
        if offset < 3 * FILE_BYTES:
            assert got[0].offset <= offset
            assert (
                len(got) == len(every) or every[-len(got)].offset > offset or got[1:2] == [] or got[1].offset > offset
            )
        else:
            assert got == []


def test_many_bad_places_are_counted_and_not_all_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make_store(tmp_path / "store")
    for index in range(0, 10, 2):
        poke(store, f"commitlog/{0:020}", index * RECORD_BYTES + 4, b"Y")
    monkeypatch.setattr(judging, "FINDINGS_MAX", 3)
    codes = [finding.code for finding in judged(store)]
    assert sorted(codes) == ["CL_BAD_RECORD"] * 3 + ["CL_MORE_FINDINGS"]
    assert verdict_of(judged(store)) == "broken"


def test_device_failure_is_damage_and_denied_access_leaves_open(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    view = look(store)
    for error, code, verdict in (
        (OSError(5, "Input/output error"), "CL_READ_ERROR", "broken"),
        (PermissionError(13, "Permission denied"), "CL_NO_ACCESS", "unknown"),
    ):
        judge = LogJudge(view)
        judge.see_file_end(view.files[0], False, error)
        findings = judge.finish()
        assert [finding.code for finding in findings if finding.code.startswith("CL_")] == [code]
        assert verdict_of(findings) == verdict


def test_end_in_an_unread_file_is_not_judged(tmp_path: Path) -> None:
    """Regression: a log with a last file that cannot be read was said to end below its floor."""
    end = LAST_BASE + PER_FILE // 2 * RECORD_BYTES
    store = make_store(tmp_path / "store", floor=end)
    view = look(store)
    judge = LogJudge(view)
    denied = PermissionError(13, "Permission denied")
    for file in view.files:
        judge.see_file_end(file, False, denied if file is view.files[-1] else None)
    findings = judge.finish()
    assert [finding.code for finding in findings] == ["CL_NO_ACCESS"]
    assert verdict_of(findings) == "unknown"
    (store / "config" / "durableFloor").write_bytes(floor_bytes(end + 1))
    judge = LogJudge(look(store))
    judge.see_file_end(view.files[0], False, denied)  # the end is in a file that can be read
    for located in iter_items(view):
        judge.see(located)
    assert "CL_ENDS_BELOW_FLOOR" in [finding.code for finding in judge.finish()]


def test_wrong_length_of_a_blank_is_damage_like_a_bad_record(tmp_path: Path) -> None:
    """A recovery takes such a blank for damaged, and the audit once called it a note."""
    store = make_store(tmp_path / "store")
    poke(store, f"commitlog/{0:020}", PER_FILE * RECORD_BYTES, struct.pack(">i", 8))
    assert brief(judged(store)) == [("CL_BLANK_LENGTH", "damage", f"commitlog/{0:020}")]
    (store / "abort").touch()
    found = [each for each in brief(judged(store)) if each[0].startswith("CL_B")]
    assert found == [("CL_BLANK_LENGTH", "tear", f"commitlog/{0:020}")]


def test_verdict_rule() -> None:
    note = Finding("CL_STRAY_FILE", "note", "f", None, "m", "r")
    moving = replace(note, code="CL_TAIL_MOVING")
    tear = replace(note, code="CL_BAD_RECORD", severity="tear")
    damage = replace(tear, severity="damage")
    assert verdict_of([]) == "holds"
    assert verdict_of([note, tear]) == "holds"
    assert verdict_of([note, tear, moving]) == "unknown"
    assert verdict_of([moving, damage]) == "broken"


def test_large_store_is_read_in_bounded_memory(tmp_path: Path) -> None:
    import tracemalloc

    store = tmp_path / "store"
    (store / "commitlog").mkdir(parents=True)
    path = store / "commitlog" / f"{0:020}"
    with path.open("wb") as stream:
        offset = 0
        while offset < 48 << 20:
            stored = record(offset, bytes(4 << 20)) if offset < 24 << 20 else record(offset, b"z" * 60_000)
            stream.write(stored)
            offset += len(stored)
        stream.truncate(1 << 30)
    tracemalloc.start()
    view = look(store)
    kinds = [type(located.item) for located in iter_items(view, piece_bytes=1 << 20)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kinds.count(Record) > 300
    assert kinds[-1] is Zeros
    assert peak < 40 << 20


def test_copies_of_the_golden_stores_are_in_the_repository() -> None:
    for name in ("01-plain-ascii", "03-rollover-blanks-retention"):
        assert (DATA / "golden" / name / "expected.json").is_file()


def test_log_file_label_is_relative() -> None:
    assert LogFile("0" * 20, Path("/x"), 0, 0, 0).label == "commitlog/" + "0" * 20
