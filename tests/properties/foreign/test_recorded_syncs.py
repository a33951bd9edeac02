"""Test the recorded syncs of foreign stores: which bytes, and as of which moment."""

import mmap
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tornpage.model.operations import Call, Crash
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state
from tornpage.properties.disk.journal import FileSynced, PageWritten
from tornpage.properties.foreign.held_file import HeldFile
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.foreign.trial import TargetTrial
from tornpage.properties.foreign.watching import WatchedDirectory
from tornpage.properties.program.case import Case, Settings
from tornpage.testing import KeyValueStore

watched = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
PAGE = 4096


class Parts(KeyValueStore):
    """Writes page 0, then page 2 with a sync of its own bytes. Reads page 0."""

    name = "parts"
    flags = os.O_DSYNC

    def __init__(self, directory: Path) -> None:
        path = Path(directory, "file")
        is_new = not path.exists()
        plain = os.open(path, os.O_RDWR | os.O_CREAT)
        if is_new:
            os.write(plain, bytes(3 * PAGE))
            os.fsync(plain)
            above = os.open(directory, os.O_RDONLY)
            os.fsync(above)
        self.plain, self.synchronous = plain, os.open(path, os.O_RDWR | self.flags)

    def put(self, key: str, value: bytes) -> None:
        os.pwrite(self.plain, value.ljust(100, b"."), 0)
        self.sync(value)

    def sync(self, value: bytes) -> None:
        os.pwrite(self.synchronous, value, 2 * PAGE)

    def get(self, key: str) -> bytes | None:
        found = os.pread(self.plain, 100, 0).rstrip(b".\0")
        return found or None

    def scan(self) -> list[tuple[str, bytes]]:
        return [("a", found)] if (found := self.get("a")) else []


class Writes(Parts):
    def sync(self, value: bytes) -> None:
        os.lseek(self.synchronous, 2 * PAGE, os.SEEK_SET)
        os.writev(self.synchronous, [value[:4], value[4:]])


class Maps(Parts):
    flags = 0

    def sync(self, value: bytes) -> None:
        with mmap.mmap(self.synchronous, 2 * PAGE, offset=PAGE) as mapping:
            mapping[PAGE : PAGE + len(value)] = value
            mapping.flush(PAGE, PAGE)


class Whole(Parts):
    def sync(self, value: bytes) -> None:
        os.fdatasync(self.plain)


PUT = Call("put", "a", size_bytes=8)


@watched
@pytest.mark.parametrize(
    ("store", "extent"),
    [("Parts", (2 * PAGE, 2 * PAGE + 8)), ("Writes", (2 * PAGE, 2 * PAGE + 8)), ("Maps", (2 * PAGE, 3 * PAGE))],
)
def test_sync_of_some_bytes_does_not_hide_the_loss_of_others(store: str, extent: tuple[int, int]) -> None:
    """A synchronous write and an msync counted as a sync of the whole file."""
    trial = TargetTrial(Settings(target=f"{__file__}:{store}"))
    try:
        before = len(trial.files.journal)
        trial.run(PUT)
        syncs = [entry for entry in trial.files.journal[before:] if isinstance(entry, FileSynced)]
        assert [(sync.extent, sync.data_only) for sync in syncs] == [(extent, True)]
    finally:
        trial.end()
    with choose_tracker("auto") as tracker:
        lost = replay(Case(Settings(target=f"{__file__}:{store}", disk="ext4"), (PUT, Crash())), tracker=tracker)
        kept = replay(Case(Settings(target=f"{__file__}:{store}", disk="btrfs"), (PUT, Crash())), tracker=tracker)
        whole = replay(Case(Settings(target=f"{__file__}:Whole", disk="ext4"), (PUT, Crash())), tracker=tracker)
    assert lost is not None
    assert lost.broken.contract == 2
    assert kept is None, "btrfs syncs the whole file"
    assert whole is None


@pytest.mark.parametrize("grows", [False, True])
def test_sync_covers_what_was_there_when_it_began(tmp_path: Path, grows: bool) -> None:
    """What another thread writes during a sync counted as synced.

    A wrong group commit was not found.
    """
    file = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    content = b"first".ljust(20 if grows else 100)
    os.write(file, content)
    recording = WatchedDirectory(tmp_path, Image(frozenset({"/"}), {"/log": content}))
    os.pwrite(file, b"second", 6)
    recording.look()
    began = len(recording.journal)
    os.pwrite(file, b"third", 50)
    found = os.fstat(file)
    recording.synced((found.st_dev, found.st_ino), began=began)
    os.close(file)
    recording.proves_journal()
    base, journal = recording.base, recording.journal
    state = disk_state(base, journal, len(journal), disk="kill")
    now = bytes(compose(state, {}).files["/log"])
    state = disk_state(base, journal, len(journal), disk="posix-strict")
    durable = bytes(compose(state, {}).files["/log"])
    assert b"second" in durable
    assert b"third" in now
    assert b"third" not in durable
    assert len(durable) == (20 if grows else 100)


def test_file_that_grows_while_it_is_compared_is_recorded_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes past the size were taken as recorded, and were missing in later images.

    That was a false alarm.
    """
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100)
    held = HeldFile(b"")
    real: Callable[..., Any] = os.fstat

    def smaller(file: int) -> Any:
        found = real(file)
        return os.stat_result([*found[:6], 60, *found[7:]])

    with path.open("rb") as file:
        monkeypatch.setattr(os, "fstat", smaller)
        first = held.refresh(0, file.fileno(), None)
        monkeypatch.setattr(os, "fstat", real)
        second = held.refresh(0, file.fileno(), None)
    written = [entry.content for entry in (*first, *second) if isinstance(entry, PageWritten)]
    assert written == [b"x" * 60, b"x" * 100]


class Late(KeyValueStore):
    """Answers the second of two overlapping puts without a sync of its own."""

    name = "late"
    promises: Mapping[str, Any] = {"callers": 2, "durable": "put"}

    def __init__(self, directory: Path) -> None:
        self.file = os.open(Path(directory, "log"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        above = os.open(directory, os.O_RDONLY)
        os.fsync(above)
        os.close(above)
        self.wrote, self.answered = threading.Barrier(2), threading.Event()
        lines = os.pread(self.file, 1 << 20, 0).decode().splitlines()
        self.values = dict(line.split() for line in lines if len(line.split()) == 2)

    def put(self, key: str, value: bytes) -> None:
        os.write(self.file, f"{key} {value.hex()}\n".encode())
        self.values[key] = value.hex()
        if self.wrote.wait(5) == 0:
            self.answered.wait(0.5)
            os.fsync(self.file)

    def get(self, key: str) -> bytes | None:
        return bytes.fromhex(self.values[key]) if key in self.values else None

    def scan(self) -> list[tuple[str, bytes]]:
        return [(key, bytes.fromhex(value)) for key, value in self.values.items()]


@watched
def test_answer_before_the_sync_of_another_caller_is_a_promise() -> None:
    """All answers of overlapping calls counted as given after the last sync."""
    trial = TargetTrial(Settings(target=f"{__file__}:Late"))
    try:
        trial.run(Call("together", parts=(PUT, Call("put", "b", size_bytes=8))))
        (first, midway), _ = trial.spans[-1].midway
        assert sum(bool(effect.power) for effect in midway.effects) == 1
        program, back = trial.performed[:1], trial.spans[-1].last - first
    finally:
        trial.end()
    with choose_tracker("auto") as tracker:
        case = Case(Settings(target=f"{__file__}:Late"), (*program, Crash(back=back)))
        found = replay(case, tracker=tracker)
        at_rest = replay(Case(case.settings, (*program, Crash())), tracker=tracker)
    assert found is not None
    assert found.broken.contract == 2
    assert at_rest is None, "the sync has made both durable before the last answer"
