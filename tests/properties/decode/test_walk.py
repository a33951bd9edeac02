"""Test the walk over a file: its items, its course after damage, and the fast scan."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.properties.handmade import blank, properties_of, record, vectors
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.record import Bad, Blank, Record
from tornpage.properties.decode.walk import Item, Unreadable, Zeros, scan, walk, walk_source


def log_file(
    count: int, *, base_offset: int = 0, trailer: bool = False, tail_bytes: int = 100, closed: bool = False
) -> tuple[bytes, list[int]]:
    """Return the bytes of a file with `count` records of different shapes.

    Returns their positions too.
    """
    stored, positions = b"", []
    for index in range(count):
        positions.append(len(stored))
        stored += record(
            base_offset + len(stored),
            bytes([index % 251 + 1]) * (index * 37 % 200),
            properties=properties_of(("KEYS", f"k{index}")) if index % 3 else b"",
            trailer=trailer,
            queue_offset=index,
            born_host=("2001:db8::1", 1) if index % 4 == 1 else ("10.0.0.1", 2),
            store_host=("2001:db8::2", 3) if index % 5 == 2 else ("10.0.0.2", 4),
        )
    return stored + (blank(tail_bytes) if closed else bytes(tail_bytes)), positions


def check_tiling(items: list[Item], base_offset: int, size_bytes: int) -> None:
    place = base_offset
    for index, item in enumerate(items):
        assert item.offset == place
        if isinstance(item, Bad):
            follower = items[index + 1]
            assert isinstance(follower, Unreadable)
            assert (follower.offset, follower.reason) == (item.offset, item.reason)
        elif isinstance(item, Blank):
            assert item is items[-1]
            place = base_offset + size_bytes
        else:
            assert item.size_bytes > 0
            place += item.size_bytes
    assert place == base_offset + size_bytes


def check_scan_agrees(buffer: bytes, items: list[Item], base_offset: int, file_bytes: int) -> None:
    offsets: list[int] = []
    end = base_offset
    stop: str | None = None
    for item in items:
        if isinstance(item, Record):
            offsets.append(item.offset)
            end = item.end_offset
            continue
        stop = "blank" if isinstance(item, Blank) else item.reason if isinstance(item, Bad) else None
        break
    assert scan(buffer, base_offset=base_offset, file_bytes=file_bytes) == (offsets, end, stop)
    if len(buffer) == file_bytes:
        assert scan(memoryview(buffer), base_offset=base_offset) == (offsets, end, stop)


def check_all_ways(buffer: bytes, base_offset: int, file_bytes: int, directory: Path | None = None) -> list[Item]:
    items = list(walk(buffer, base_offset=base_offset, file_bytes=file_bytes))
    check_tiling(items, base_offset, min(len(buffer), file_bytes))
    check_scan_agrees(buffer, items, base_offset, file_bytes)
    if directory is not None:
        path = directory / "file"
        path.write_bytes(buffer)
        with FileSource(path, size_bytes_max=file_bytes, piece_bytes=4096) as source:
            assert list(walk_source(source, base_offset=base_offset, file_bytes=file_bytes)) == items
            assert not source.has_changed()
    return items


@pytest.mark.parametrize("trailer", [False, True])
@pytest.mark.parametrize("closed", [False, True])
def test_sound_file(tmp_path: Path, trailer: bool, closed: bool) -> None:
    buffer, positions = log_file(120, base_offset=1 << 40, trailer=trailer, closed=closed)
    items = check_all_ways(buffer, 1 << 40, len(buffer), tmp_path)
    assert [item.offset - (1 << 40) for item in items[:-1]] == positions
    assert all(isinstance(item, Record) for item in items[:-1])
    assert items[-1] == (Blank if closed else Zeros)((1 << 40) + len(buffer) - 100, 100)


def test_roll_over_vector() -> None:
    (files,) = vectors("logFiles")
    by_name = {vector["name"]: vector for vector in vectors("record", "blank")}
    for name, parts in files["files"].items():
        stored = b"".join(bytes.fromhex(by_name[part]["hex"]) for part in parts)
        buffer = stored + bytes(files["fileBytes"] - len(stored))
        items = check_all_ways(buffer, int(name), files["fileBytes"])
        got = [(item.offset, item.size_bytes) for item in items if isinstance(item, Record | Blank)]
        assert got == [(by_name[part]["physicalOffset"], by_name[part]["sizeBytes"]) for part in parts]


def test_batch_vector_at_its_place() -> None:
    stored = b"".join(bytes.fromhex(vector["hex"]) for vector in vectors("record") if vector["name"].startswith("V6-"))
    items = check_all_ways(stored + bytes(100), 1000, len(stored) + 100)
    assert [item.offset for item in items] == [1000, 1142, 1266]


def test_empty_and_zero_files() -> None:
    assert check_all_ways(b"", 0, 4096) == []
    assert check_all_ways(bytes(4096), 4096, 4096) == [Zeros(4096, 4096)]
    assert check_all_ways(bytes(5), 0, 4096) == [Zeros(0, 5)]


def test_walk_goes_on_at_the_next_record_of_that_place() -> None:
    buffer, positions = log_file(10)
    damaged = bytearray(buffer)
    damaged[positions[4] + 4] ^= 1
    items = check_all_ways(bytes(damaged), 0, len(buffer))
    assert items[4:6] == [
        Bad(positions[4], "bad_magic", "magic"),
        Unreadable(positions[4], positions[5] - positions[4], "bad_magic"),
    ]
    assert [item.offset for item in items[6:-1]] == positions[5:]


def test_walk_does_not_take_records_written_for_another_place() -> None:
    first = record(0, b"one")
    stale = record(999, b"stale") + record(4000, b"stale too")
    buffer = first + b"junk" + stale + bytes(50)
    items = check_all_ways(buffer, 0, len(buffer))
    assert items[1:] == [
        Bad(len(first), "bad_magic", "magic"),
        Unreadable(len(first), len(buffer) - len(first), "bad_magic"),
    ]


def test_record_inside_a_body_is_not_read_while_its_carrier_is_sound() -> None:
    inner = record(88, b"inner")
    buffer = record(0, inner + b"rest") + bytes(30)
    assert [type(item) for item in check_all_ways(buffer, 0, len(buffer))] == [Record, Zeros]
    damaged = bytearray(buffer)
    damaged[88 + len(inner)] ^= 1  # now the carrier's body checksum is wrong, and the inner record stands at its offset
    items = check_all_ways(bytes(damaged), 0, len(buffer))
    assert [type(item) for item in items[:3]] == [Bad, Unreadable, Record]


def test_hole_then_records() -> None:
    buffer, positions = log_file(6)
    damaged = buffer[: positions[2]] + bytes(positions[4] - positions[2]) + buffer[positions[4] :]
    items = check_all_ways(damaged, 0, len(buffer))
    hole_bytes = positions[4] - positions[2]
    assert items[2:4] == [
        Bad(positions[2], "zero_header", "magic"),
        Unreadable(positions[2], hole_bytes, "zero_header"),
    ]
    assert [item.offset for item in items[4:-1]] == positions[4:]


def test_record_that_uses_the_reserve_is_refused() -> None:
    stored = record(0)
    items = check_all_ways(stored + bytes(7), 0, len(stored) + 7)
    assert items[0] == Bad(0, "past_end", "size")
    assert [type(item) for item in check_all_ways(stored + bytes(8), 0, len(stored) + 8)] == [Record, Zeros]


def test_short_file_ends_with_what_is_there() -> None:
    buffer, positions = log_file(5, closed=True)
    cut = positions[3] + 50
    items = check_all_ways(buffer[:cut], 0, len(buffer))
    assert [type(item) for item in items] == [Record, Record, Record, Bad, Unreadable]
    assert items[3] == Bad(positions[3], "past_end", "size")
    at_boundary = check_all_ways(buffer[: positions[3]], 0, len(buffer))
    assert [type(item) for item in at_boundary] == [Record] * 3


def test_file_longer_than_its_nominal_size_is_read_to_that_size() -> None:
    buffer, _ = log_file(3, closed=True)
    assert check_all_ways(buffer + b"more", 0, len(buffer)) == check_all_ways(buffer, 0, len(buffer))


def test_too_large_a_record_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "file"
    large = record(0, bytes(100_000))
    path.write_bytes(large + record(len(large)) + bytes(100))
    with FileSource(path, size_bytes_max=1 << 20) as source:
        items = list(walk_source(source, base_offset=0, file_bytes=1 << 20, record_bytes_max=50_000))
    assert items[:2] == [Bad(0, "over_limit", "size"), Unreadable(0, len(large), "over_limit")]
    assert isinstance(items[2], Record)


@pytest.mark.parametrize("seed", range(60))
def test_random_damage_never_raises_and_all_ways_agree(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    buffer, _ = log_file(rng.randrange(1, 80), trailer=seed % 2 == 0, closed=rng.random() < 0.5, base_offset=65536)
    damaged = bytearray(buffer)
    for _ in range(rng.randrange(1, 8)):
        start = rng.randrange(len(damaged))
        size = rng.choice([1, 4, 8, 512, 4096])
        kind = rng.randrange(4)
        if kind == 0:
            damaged[start] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[start : start + size] = bytes(len(damaged[start : start + size]))
        elif kind == 2:
            damaged[start : start + size] = rng.randbytes(len(damaged[start : start + size]))
        else:
            source = rng.randrange(len(damaged))
            piece = damaged[source : source + size]
            damaged[start : start + len(piece)] = piece
    del damaged[len(buffer) :]
    if rng.random() < 0.2:
        del damaged[rng.randrange(len(damaged)) :]
    check_all_ways(bytes(damaged), 65536, len(buffer), tmp_path)


@given(st.binary(max_size=600), st.integers(0, 700))
def test_any_bytes_never_raise(buffer: bytes, file_bytes: int) -> None:
    check_all_ways(buffer, 0, file_bytes)


@given(st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 7)), min_size=1, max_size=4), st.booleans())
def test_flipped_bits_never_raise(flips: list[tuple[int, int]], trailer: bool) -> None:
    buffer, _ = log_file(8, trailer=trailer)
    damaged = bytearray(buffer)
    for place, bit in flips:
        damaged[place % len(damaged)] ^= 1 << bit
    check_all_ways(bytes(damaged), 0, len(buffer))


def test_sparse_file_is_hopped_over(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    size = 1 << 34  # reading the hole would take far longer than a test
    with path.open("wb") as file:
        file.write(record(0))
        file.truncate(size)
    with FileSource(path, size_bytes_max=size) as source:
        assert [type(item) for item in walk_source(source, base_offset=0, file_bytes=size)] == [Record, Zeros]
    far = size - 4096
    with path.open("r+b") as file:
        file.seek(far)
        file.write(record(far))
    with FileSource(path, size_bytes_max=size) as source:
        items = list(walk_source(source, base_offset=0, file_bytes=size))
    assert [type(item) for item in items] == [Record, Bad, Unreadable, Record, Zeros]
    assert items[3].offset == far


@pytest.mark.parametrize("piece_bytes", [4096, 8192])
def test_magic_across_pieces_is_found(tmp_path: Path, piece_bytes: int) -> None:
    path = tmp_path / "file"
    for shift in range(4080, 4100):
        path.write_bytes(b"\xda" * shift + record(shift) + bytes(100))
        with FileSource(path, size_bytes_max=1 << 16, piece_bytes=piece_bytes) as source:
            items = list(walk_source(source, base_offset=0, file_bytes=1 << 16))
        assert [type(item) for item in items] == [Bad, Unreadable, Record, Zeros]


@pytest.mark.parametrize("piece_bytes", [4096, 4 << 20])
def test_the_first_byte_past_written_zeros_is_found(tmp_path: Path, piece_bytes: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3 << 20))  # written, so that there is no hole to skip
    with FileSource(path, size_bytes_max=1 << 30, piece_bytes=piece_bytes) as source:
        assert source.next_nonzero(5) == 3 << 20
    steps = (255, 256, 4095, 4096, (1 << 20) - 1, 1 << 20, (2 << 20) + 256, (3 << 20) - 1)
    for place in steps:
        with path.open("r+b") as file:
            file.seek(place)
            file.write(b"\1")
        with FileSource(path, size_bytes_max=1 << 30, piece_bytes=piece_bytes) as source:
            assert source.next_nonzero(0) == steps[0]
            assert source.next_nonzero(place) == place
            assert source.next_nonzero(place + 1) == 3 << 20
