"""Test the handshake, which names its errors, and the journal of a watched directory."""

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state
from tornpage.properties.disk.journal import (
    DirectoryMade,
    DirectorySynced,
    FileCreated,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    PageWritten,
    Resized,
)
from tornpage.properties.foreign import watching
from tornpage.properties.foreign.process import Died, StoreProcess
from tornpage.properties.foreign.protocol import BadHandshake, Handshake, read_handshake
from tornpage.properties.foreign.session import StoreSession
from tornpage.properties.foreign.shapes.messages import MessagePromises
from tornpage.properties.foreign.spec import CommandSpec, PythonSpec
from tornpage.properties.foreign.syscalls import _MACHINES
from tornpage.properties.foreign.watching import WatchedDirectory

# ---- the handshake ---------------------------------------------------------------------------------------------------


def test_a_handshake_without_promises_makes_the_usual_ones() -> None:
    usual = ("put", "flush", "close")
    assert read_handshake({"tornpage": 1}) == Handshake(
        "the store", "messages", MessagePromises(durable=usual, kill=usual)
    )
    assert read_handshake({"tornpage": 1, "name": "x", "promises": {"durable": "flush"}}) == Handshake(
        "x", "messages", MessagePromises(durable=usual[1:], kill=usual[1:])
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({}, 'has no "tornpage"'),
        ({"tornpage": 2}, "speaks version 2 of the protocol, and this tornpage speaks 1"),
        ({"tornpage": True}, "speaks version True"),
        ({"tornpage": 1, "promise": {}}, "unknown field 'promise'; did you mean 'promises'?"),
        ({"tornpage": 1, "promises": []}, "has to be an object"),
        (
            {"tornpage": 1, "promises": {"indexes": True}},
            "promises 'indexes', which is not a known promise; did you mean 'index'?",
        ),
        ({"tornpage": 1, "promises": {"durable": "soon"}}, "durable is 'soon': put, flush, close, nothing"),
        ({"tornpage": 1, "promises": {"index": "yes"}}, "index is 'yes': true or false"),
        ({"tornpage": 1, "promises": {"body_bytes_max": 0}}, "body_bytes_max is 0"),
        ({"tornpage": 1, "promises": {"kill": "flush"}}, "what survives a power loss survives a kill"),
        ({"tornpage": 1, "promises": {"offsets": False, "queues": False}}, "then nothing can be read back"),
        ({"tornpage": 1, "shape": "key-valu"}, "the shape is 'key-valu'; did you mean 'key-value'?"),
        ({"tornpage": 1, "shape": "key-value", "promises": {"batch": "some"}}, "batch is 'some': none, atomic, each"),
        ({"tornpage": 1, "shape": "key-value", "promises": {"consistent": "kill", "durable": "put"}}, "durable has to"),
    ],
)
def test_a_wrong_handshake_is_named(answer: dict[str, Any], said: str) -> None:
    with pytest.raises(BadHandshake) as raised:
        read_handshake(answer)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


# ---- the directory ---------------------------------------------------------------------------------------------------


def place(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def test_what_happens_to_files_and_names_is_in_the_journal(tmp_path: Path) -> None:
    directory = WatchedDirectory(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "new").write_bytes(b"x" * 5000)
    directory.look()
    directory.synced(place(tmp_path / "d" / "new"))
    directory.synced(place(tmp_path / "d"))
    (tmp_path / "d" / "new").rename(tmp_path / "d" / "all")
    directory.look()
    (tmp_path / "d" / "all").unlink()
    directory.look()
    assert directory.journal == [
        DirectoryMade("/d"),
        FileCreated(0, "/d/new"),
        Resized(0, 4096),
        Resized(0, 5000),
        PageWritten(0, 0, b"x" * 4096),
        PageWritten(0, 1, b"x" * 904),
        FileSynced(0, True),
        DirectorySynced("/d"),
        FileRenamed(0, "/d/new", "/d/all"),
        FileUnlinked(0, "/d/all"),
    ]
    assert directory.events == [6, 7, 8, 9, 10]
    assert not directory.unsupported


def test_a_file_that_becomes_shorter_and_longer_is_told_byte_for_byte(tmp_path: Path) -> None:
    file, directory = tmp_path / "f", WatchedDirectory(tmp_path)
    file.write_bytes(b"a" * 9000)
    directory.synced(place(file))
    for size_bytes in (100, 6000, 0, 9000):
        os.truncate(file, size_bytes)
        directory.look()
        directory.proves_itself()
        state = disk_state(directory.base, directory.journal, len(directory.journal), disk="kill")
        assert compose(state, {}).files == {"/f": file.read_bytes()}


def test_a_lost_truncation_leaves_the_old_bytes_or_zeros(tmp_path: Path) -> None:
    file, directory = tmp_path / "f", WatchedDirectory(tmp_path)
    file.write_bytes(b"a" * 100)
    directory.synced(place(file))
    directory.synced(place(tmp_path))
    os.truncate(file, 10)
    directory.look()
    state = disk_state(directory.base, directory.journal, len(directory.journal), disk="posix-strict")
    assert compose(state, {}).files["/f"] == b"a" * 100
    assert compose(state, {"page /f 0": 1}).files["/f"] == b"a" * 10 + bytes(90)
    assert compose(state, {"size /f": 1}).files["/f"] == b"a" * 10


def exchange(first: Path, second: Path) -> None:
    there = -100  # AT_FDCWD
    assert ctypes.CDLL(None).renameat2(there, bytes(first), there, bytes(second), 2) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda top: (top / "g").symlink_to("f"), "/g is a symbolic link"),
        (lambda top: exchange(top / "f", top / "d"), "/d and /f were exchanged"),
        (lambda top: (top / "f").write_bytes(b"x" * (9 << 20)), "more than 8 MiB in one session"),
    ],
)
def test_what_cannot_be_told_is_named_and_ends_the_telling(
    tmp_path: Path, change: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "BYTES_MAX", 8 << 20)
    (tmp_path / "d").write_bytes(b"y")
    directory = WatchedDirectory(tmp_path, Image(frozenset({"/"}), {"/d": b"y"}))
    (tmp_path / "f").write_bytes(b"x")
    directory.look()
    change(tmp_path)
    directory.look()
    assert said in directory.unsupported
    told = len(directory.journal)
    (tmp_path / "later").write_bytes(b"x")
    directory.look()
    assert len(directory.journal) == told


def test_a_journal_that_missed_something_does_not_pass(tmp_path: Path) -> None:
    directory = WatchedDirectory(tmp_path)
    (tmp_path / "f").write_bytes(b"x")
    directory.look()
    directory.journal.pop()
    with pytest.raises(HarnessError, match="the recording of /f does not match the file"):
        directory.proves_itself()


def test_the_filter_is_a_whole_program_on_every_machine() -> None:
    for machine in _MACHINES.values():
        program = machine.filter()
        assert len(program) % 8 == 0
        assert len(program) // 8 < 256, "jumps of the filter are short"
        assert {"write", "fsync", "openat", "renameat2"} <= set(machine.names.values())


# ---- unexpected answers ----------------------------------------------------------------------------------------------


def process_of(script: str, root: Path) -> StoreProcess:
    return StoreProcess(CommandSpec((sys.executable, "-c", script)), root)


def test_a_store_that_a_signal_without_a_name_ends_is_told(tmp_path: Path) -> None:
    process = process_of("import os; input(); os.kill(os.getpid(), 40)", tmp_path)
    try:
        with pytest.raises(Died, match="is killed by signal 40 instead of answering hello"):
            process.ask("hello")
    finally:
        process.kill()


@pytest.mark.parametrize(("given", "status"), [(7, 7), (None, 0), ("the disk is full", 1), (256, 0)])
def test_a_python_store_that_exits_has_its_own_status(given: object, status: int, tmp_path: Path) -> None:
    def exits(_directory: Path) -> Any:
        raise SystemExit(given)

    process = StoreProcess(PythonSpec(exits), tmp_path)
    try:
        with pytest.raises(Died, match=f"exits with {status} instead of answering hello"):
            process.ask("hello")
    finally:
        process.kill()


def test_an_error_with_half_a_character_can_be_printed(tmp_path: Path) -> None:
    process = process_of(r"""input(); print('{"error": "\\ud800 is wrong"}', flush=True); input()""", tmp_path)
    try:
        with pytest.raises(GuaranteeBroken) as broken:
            StoreSession(process, opens_again=True)
    finally:
        process.kill()
    assert str(broken.value).encode().endswith(b"? is wrong")


def test_a_name_with_half_a_character_can_be_printed() -> None:
    assert read_handshake({"tornpage": 1, "name": "store \ud800"}).name == "store ?"
