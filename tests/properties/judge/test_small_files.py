"""Test that the judges of small files refuse one mistake on the disk at a time."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tornpage.model.operations import Crash, Flush, HarmDerived, Put, Step
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.evidence import Recovered
from tornpage.properties.judge.rulings import require
from tornpage.properties.judge.small_files import (
    DERIVED_FLOOR,
    DURABLE_FLOOR,
    SMALL_FILE_JUDGES,
    floors_say_what_is_durable,
    small_files_are_whole,
)
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import ROOT

CHECKPOINT = f"{ROOT}/checkpoint"
FILE_BYTES = 1024
Change = Callable[[bytes], bytes | None]


@pytest.fixture
def found(tracker: DirtyTracker) -> Recovered:
    """A store recovered from a power loss after a clean round, with all small files."""
    trial = lockstep_of(Settings(file_bytes=FILE_BYTES), tracker=tracker)
    dispatched = (Step(service="reput"), Step(service="flush-queues", after_ms=60_000))
    for operation in (Put(), Put(), Flush(), *dispatched, Crash(), *dispatched):
        trial.run(operation)
    return trial.recovery.judged_at_rest()


def on_disk(found: Recovered, path: str, change: Change) -> list[Recovered]:
    """The disk has another content after the crash, then after the recovery."""
    return [
        replace(found, durable=_changed(found.durable, path, change)),
        _seen_as(found, base=_changed(found.files.base, path, change)),
    ]


def _changed(image: Image, path: str, change: Change) -> Image:
    files = dict(image.files)
    content = change(files.pop(path))
    return Image(image.directories, files if content is None else {**files, path: content})


def _seen_as(found: Recovered, **changes: object) -> Recovered:
    """The process uses another disk."""
    files: Any = SimpleNamespace(
        **{"paths": found.files.paths, "peek": found.files.peek, "base": found.files.base} | changes
    )
    return replace(found, files=files)


def floor_of(offset: int, file_bytes: int = FILE_BYTES, magic: bytes = b"TPFLOOR1") -> bytes:
    head = struct.pack(">8sqq", magic, offset, file_bytes)
    return (head + struct.pack(">I", zlib.crc32(head))).ljust(512, b"\0")


def derived_of(body: bytes) -> bytes:
    return b"TPDERIVED1 %08x\n" % zlib.crc32(body) + body


def test_a_right_recovery_passes_and_has_all_of_them(found: Recovered) -> None:
    assert {DURABLE_FLOOR, DERIVED_FLOOR, CHECKPOINT} <= found.durable.files.keys()
    for judge in SMALL_FILE_JUDGES:
        require(judge(found))


NOT_WHOLE: dict[str, tuple[str, Change]] = {
    "floor lost": (DURABLE_FLOOR, lambda stored: None),
    "floor empty": (DURABLE_FLOOR, lambda stored: b""),
    "floor of zeros": (DURABLE_FLOOR, lambda stored: bytes(512)),
    "floor with another checksum": (DURABLE_FLOOR, lambda stored: stored[:24] + b"\xff\xff" + stored[26:]),
    "floor cut short": (DURABLE_FLOOR, lambda stored: stored[:100]),
    "floor too long": (DURABLE_FLOOR, lambda stored: stored + bytes(1)),
    "floor of another magic": (DURABLE_FLOOR, lambda stored: floor_of(1, magic=b"TPFLOOR2")),
    "derived floor empty": (DERIVED_FLOOR, lambda stored: b""),
    "derived floor cut short": (DERIVED_FLOOR, lambda stored: stored[:-1]),
    "derived floor without an offset": (DERIVED_FLOOR, lambda stored: derived_of(b"{}")),
    "checkpoint cut short": (CHECKPOINT, lambda stored: stored[:24]),
    "checkpoint too long": (CHECKPOINT, lambda stored: stored + bytes(1)),
    "something behind the times": (CHECKPOINT, lambda stored: stored[:-1] + b"x"),
    "a negative time": (CHECKPOINT, lambda stored: stored[:8] + b"\x80" + stored[9:]),
}


@pytest.mark.parametrize("wrong", NOT_WHOLE)
def test_what_is_not_whole_on_either_disk_is_noticed(found: Recovered, wrong: str) -> None:
    for changed in on_disk(found, *NOT_WHOLE[wrong]):
        with pytest.raises(GuaranteeBroken, match="contract 13"):
            require(small_files_are_whole(changed))


def test_an_empty_checkpoint_on_the_disk_and_none_are_as_good(found: Recovered) -> None:
    changes: tuple[Change, ...] = (lambda stored: b"", lambda stored: None)
    for change in changes:
        for changed in on_disk(found, CHECKPOINT, change):
            require(small_files_are_whole(changed))


@pytest.mark.parametrize(("lost", "name"), [(CHECKPOINT, "checkpoint"), (DURABLE_FLOOR, "durable floor")])
def test_process_without_a_whole_small_file_is_noticed(found: Recovered, lost: str, name: str) -> None:
    def peek(path: str, offset: int, size_bytes: int) -> bytes:
        return bytes(24) if path == lost else found.files.peek(path, offset, size_bytes)

    with pytest.raises(GuaranteeBroken, match=f"contract 13: the recovered store has no whole {name}"):
        require(small_files_are_whole(_seen_as(found, peek=peek)))


def test_checkpoint_of_another_store_needs_its_times_alone(found: Recovered) -> None:
    def peek(path: str, offset: int, size_bytes: int) -> bytes:
        stored = found.files.peek(path, offset, size_bytes)
        return first + stored[1:-1] + b"x" if path == CHECKPOINT else stored

    harmed = replace(_seen_as(found, peek=peek), was_corrupted=True)
    first = b"\0"
    require(small_files_are_whole(harmed))
    first = b"\x80"
    with pytest.raises(GuaranteeBroken, match="contract 13"):
        require(small_files_are_whole(harmed))


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (DURABLE_FLOOR, floor_of(1 << 20)),
        (DURABLE_FLOOR, floor_of(0, file_bytes=2 * FILE_BYTES)),
        (DERIVED_FLOOR, derived_of(b'{"offset":1048576}')),
    ],
    ids=["durable floor", "size of log files", "derived floor"],
)
def test_a_floor_beyond_the_log_is_noticed_on_either_disk(found: Recovered, path: str, content: bytes) -> None:
    for changed in on_disk(found, path, lambda stored: content):
        with pytest.raises(GuaranteeBroken, match="contract 7"):
            require(floors_say_what_is_durable(changed))


def test_a_low_floor_is_true_behind_a_crash_and_not_enough_behind_a_recovery(found: Recovered) -> None:
    recovered, crashed = on_disk(found, DURABLE_FLOOR, lambda stored: floor_of(0))
    require(floors_say_what_is_durable(crashed))
    with pytest.raises(GuaranteeBroken, match="contract 7"):
        require(floors_say_what_is_durable(recovered))


@pytest.mark.parametrize("harm", ["lost", "zeroed", "torn", "stale", "misdirected", "resized", "stray"])
@pytest.mark.parametrize("file", ["floor", "derived-floor", "checkpoint"])
def test_what_somebody_has_harmed_is_not_held_against_the_store(tracker: DirtyTracker, file: str, harm: str) -> None:
    trial = lockstep_of(Settings(file_bytes=FILE_BYTES), tracker=tracker)
    for amount in (3, 700):
        trial.run(Put())
        trial.run(HarmDerived(file=file, harm=harm, amount=amount))  # type: ignore[arg-type]
        trial.run(Crash())
