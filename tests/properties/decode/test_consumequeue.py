"""Test consume queue files: every unit is in one item, and none raises."""

from __future__ import annotations

import os
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tornpage.properties.decode import consumequeue
from tornpage.properties.decode.consumequeue import (
    EmptyUnits,
    ExtReader,
    ExtUnit,
    QueueItem,
    QueueUnit,
    list_queues,
    walk_units,
)
from tornpage.properties.decode.files import FileSource

UNIT = bytes.fromhex("0000000000001000000000c7000000000027a808")
PREFILL = bytes.fromhex("00000000000000007fffffff0000000000000000")


def walked(path: Path, content: bytes, *, base: int = 0, piece_bytes: int = 4096) -> list[QueueItem]:
    path.write_bytes(content)
    with FileSource(path, size_bytes_max=1 << 40, piece_bytes=piece_bytes) as source:
        return list(walk_units(source, base=base))


def test_unit_of_the_format_is_read(tmp_path: Path) -> None:
    [unit] = walked(tmp_path / "f", UNIT, base=400)
    assert unit == QueueUnit(20, 4096, 199, 2598920)
    assert isinstance(unit, QueueUnit)
    assert (unit.is_possible, unit.is_prefill, unit.has_address) == (True, False, False)


def test_prefill_unit_is_known(tmp_path: Path) -> None:
    [unit] = walked(tmp_path / "f", PREFILL)
    assert isinstance(unit, QueueUnit)
    assert unit.is_prefill


def test_empty_units_are_one_item_and_a_cut_unit_is_left_out(tmp_path: Path) -> None:
    content = bytes(40) + UNIT + bytes(20 * 1000) + UNIT + UNIT[:7]
    items = walked(tmp_path / "f", content)
    assert [type(item) for item in items] == [EmptyUnits, QueueUnit, EmptyUnits, QueueUnit]
    assert items[2] == EmptyUnits(3, 1000)


@given(
    units=st.lists(st.one_of(st.just(bytes(20)), st.binary(min_size=20, max_size=20)), max_size=600),
    rest=st.binary(max_size=19),
)
def test_items_tile_the_file(units: list[bytes], rest: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "tiled"
    items = walked(path, b"".join(units) + rest)
    read = b"".join(
        bytes(20 * item.count)
        if isinstance(item, EmptyUnits)
        else struct.pack(">qiq", item.physical_offset, item.size_bytes, item.tags_code)
        for item in items
    )
    assert read == b"".join(units)
    numbers = [item.queue_offset for item in items]
    assert numbers == sorted(set(numbers))
    kinds = [type(item) for item in items]
    assert all(pair != (EmptyUnits, EmptyUnits) for pair in pairwise(kinds))


def test_extension_unit_is_found_by_address(tmp_path: Path) -> None:
    unit = bytes.fromhex("001c000000000027a8070000018bcfe5687b00080102030405060708")
    (tmp_path / f"{0:020}").write_bytes((unit * 4 + b"\xff\xff").ljust(128, b"\0"))
    (tmp_path / f"{128:020}").write_bytes(unit.ljust(128, b"\0"))
    with ExtReader(tmp_path) as extension:
        for address in (-(2**63), -(2**63) + 84, -(2**63) + 128):
            assert extension.look_up(address) == ExtUnit(2598919, 1700000000123)
        for address in (-(2**63) + 1, -(2**63) + 112, -(2**63) + 200, -(2**63) + 4096):
            assert extension.look_up(address) is None
    with ExtReader(tmp_path / "absent") as extension:
        assert extension.look_up(-(2**63)) is None


def test_queues_are_listed_with_what_does_not_belong(tmp_path: Path) -> None:
    root = tmp_path / "consumequeue"
    for name in (
        "T/0/00000000000000000400",
        "T/0/00000000000000000000",
        "T/0/00000000000000000410",
        "T/0/92233720368547758080",
        "T/0/x",
        "T/y/z",
        "stray",
        "订单/1/" + "0" * 20,
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(bytes(400))
    files, strays, closed = list_queues(tmp_path)
    assert [(file.topic, file.queue_id, file.base, file.size_bytes) for file in files] == [
        ("T", 0, 0, 400),
        ("T", 0, 400, 400),
        ("订单", 1, 0, 400),
    ]
    no_positions = ["consumequeue/T/0/00000000000000000410", "consumequeue/T/0/92233720368547758080"]
    assert strays == [*no_positions, "consumequeue/T/0/x", "consumequeue/T/y", "consumequeue/stray"]
    assert closed == []


def test_a_file_full_of_small_gaps_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes((b"\1" * 20 + bytes(20)) * 5_000)
    read_bytes: list[int] = []
    pread = os.pread

    def counted(fd: int, size_bytes: int, position: int) -> bytes:
        read_bytes.append(size_bytes)
        return pread(fd, size_bytes, position)

    monkeypatch.setattr(os, "pread", counted)
    monkeypatch.setattr(consumequeue, "PIECE_BYTES", 4096)
    with FileSource(path, size_bytes_max=1 << 30, piece_bytes=4096) as source:
        items = list(walk_units(source, base=0))
    assert len(items) == 10_000
    assert sum(read_bytes) <= 3 * 200_000


def test_a_queue_has_the_name_that_a_store_gives_it(tmp_path: Path) -> None:
    """The name is a 32-bit number in its only spelling.

    No queue has two directories, and each number fits its column.
    """
    names = ["0", "-5", str(2**31 - 1), str(-(2**31)), "00", "-0", "05", "+1", str(2**31), "9999999999"]
    for name in names:
        (tmp_path / "consumequeue/T" / name).mkdir(parents=True)
        (tmp_path / "consumequeue/T" / name / ("0" * 20)).write_bytes(bytes(20))
    files, strays, _ = list_queues(tmp_path)
    assert sorted(file.queue_id for file in files) == [-(2**31), -5, 0, 2**31 - 1]
    assert strays == [f"consumequeue/T/{name}" for name in sorted(names[4:])]
