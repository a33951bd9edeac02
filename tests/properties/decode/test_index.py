"""Test index files: every entry by its chain, every contradiction by name, no exception."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.impl.golden import CASES, golden, read
from tornpage.properties.decode.index import IndexEntry, decode_index, index_file_bytes, index_hash
from tornpage.properties.decode.index_files import IndexFile, IndexReader

SLOTS, ENTRIES = 5, 10

FOUR = bytes.fromhex(
    "0000018bcfe5687b0000018bcfe564180000000000001000000000000000251c0000000300000005"
    "0000000200000000000000000000000400000003"
    "0000000000000000000000000000000000000000"
    "0029e6a80000000000001000" + "0000000000000000"
    "0029e6a90000000000001000" + "0000000000000000"
    "0029e6a80000000000002328" + "0000003e00000001"
    "609a4b71000000000000251c" + "0000000000000000"
).ljust(index_file_bytes(slots=SLOTS, entries=ENTRIES), b"\0")
"""Four keys in a file of five slots.

They are TopicTest#k1, TopicTest#k2, TopicTest#k1 again, and T#polygenelubricants.
"""


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        ("TopicTest", "k1", 0x29E6A8),
        ("TopicTest", "k3", 0x29E6AA),
        ("T", "polygenelubricants", 0x609A4B71),
        ("", "\U0001f600", abs(31 * (31 * ord("#") + 0xD83D) + 0xDE00)),
    ],
)
def test_hash_of_a_key_is_that_of_java(topic: str, key: str, value: int) -> None:
    assert index_hash(topic, key) == value


def test_entries_chains_and_header_are_read() -> None:
    view = decode_index(FOUR, slots=SLOTS, entries=ENTRIES)
    assert view.problems == ()
    assert view.header == (0x18BCFE5687B, 0x18BCFE56418, 4096, 9500, 3, 5)
    assert [entry.offset for entry in view.entries] == [4096, 4096, 9000, 9500]
    assert list(view.chain(index_hash("TopicTest", "k1"))) == [
        IndexEntry(3, 0x29E6A8, 9000, 62, 1),
        IndexEntry(1, 0x29E6A8, 4096, 0, 0),
    ]
    assert list(view.chain(index_hash("TopicTest", "k9"))) == []


def test_empty_file_is_sound() -> None:
    empty = bytes(index_file_bytes(slots=SLOTS, entries=ENTRIES))
    assert decode_index(empty, slots=SLOTS, entries=ENTRIES).problems == ()
    started = empty[:39] + b"\1" + empty[40:]
    assert decode_index(started, slots=SLOTS, entries=ENTRIES).problems == ()


def changed(at: int, value: int, size_bytes: int = 4) -> bytes:
    return FOUR[:at] + value.to_bytes(size_bytes, "big", signed=True) + FOUR[at + size_bytes :]


def entry_at(number: int) -> int:
    return 40 + 4 * SLOTS + 20 * number


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (changed(16, 4095, 8), "begin_is_not_the_first_entry"),
        (changed(24, 9501, 8), "end_is_not_the_last_entry"),
        (changed(32, 4), "slots_count_entries"),
        (changed(32, 5), "slots_in_use"),
        (changed(32, 1), "slots_in_use"),
        (changed(36, 11), "next_entry_out_of_range"),
        (changed(36, -1), "next_entry_out_of_range"),
        (changed(36, 4), "bytes_behind_the_entries"),
        (changed(36, 4), "slot_is_not_the_newest_entry"),
        (changed(40, 1), "slot_is_not_the_newest_entry"),
        (changed(44, 3), "slot_is_not_the_newest_entry"),
        (changed(40 + 16, 9999), "slot_is_not_the_newest_entry"),
        (changed(entry_at(0), 1), "entry_zero_is_used"),
        (changed(entry_at(1), -1), "hash_is_negative"),
        (changed(entry_at(2) + 4, 4000, 8), "offsets_go_back"),
        (changed(entry_at(3) + 12, -1), "seconds_are_negative"),
        (changed(entry_at(3) + 16, 3), "previous_is_not_the_entry_before"),
        (changed(entry_at(3) + 16, 0), "previous_is_not_the_entry_before"),
        (changed(entry_at(7), 1), "bytes_behind_the_entries"),
        (FOUR[:-1], "file_size"),
        (FOUR + b"\0", "file_size"),
        (b"", "file_size"),
    ],
)
def test_what_contradicts_itself_is_named(data: bytes, problem: str) -> None:
    assert problem in [name for name, _ in decode_index(data, slots=SLOTS, entries=ENTRIES).problems]


def test_chain_that_leads_in_a_circle_ends() -> None:
    loop = changed(entry_at(1) + 16, 3)
    found = list(decode_index(loop, slots=SLOTS, entries=ENTRIES).chain(index_hash("TopicTest", "k1")))
    assert [entry.number for entry in found] == [3, 1, 3, 1]  # the number of entries


@given(
    data=st.binary(max_size=400), slots=st.integers(1, 9), entries=st.integers(1, 12), key_hash=st.integers(0, 2**31)
)
def test_no_bytes_raise(data: bytes, slots: int, entries: int, key_hash: int) -> None:
    view = decode_index(data, slots=slots, entries=entries)
    assert len(list(view.chain(key_hash))) <= len(view.entries) < entries


@given(position=st.integers(0, len(FOUR) - 1), bit=st.integers(0, 7))
def test_a_flipped_bit_is_named_unless_it_is_a_time_an_offset_inside_or_a_hash_of_the_same_slot(
    position: int, bit: int
) -> None:
    data = bytearray(FOUR)
    data[position] ^= 1 << bit
    view = decode_index(bytes(data), slots=SLOTS, entries=ENTRIES)
    times = position < 16 or (position >= entry_at(1) and 12 <= (position - entry_at(0)) % 20 < 16)
    same = [entry.key_hash % SLOTS for entry in view.entries] == [
        0x29E6A8 % 5,
        0x29E6A9 % 5,
        0x29E6A8 % 5,
        0x609A4B71 % 5,
    ]
    inside = [(entry.key_hash, entry.offset) for entry in view.entries]
    stored = decode_index(FOUR, slots=SLOTS, entries=ENTRIES)
    moved = inside != [(entry.key_hash, entry.offset) for entry in stored.entries]
    assert view.problems or times or (moved and same)


@pytest.mark.parametrize("case", CASES)
def test_index_files_of_rocketmq_are_sound_and_have_every_key(case: str) -> None:
    folder = golden(case)
    settings = read(folder / "config.json")["store"]
    found: set[tuple[int, int]] = set()
    paths = sorted(Path(folder / "store" / "index").iterdir())
    for path in paths:
        view = decode_index(path.read_bytes(), slots=settings["maxHashSlotNum"], entries=settings["maxIndexNum"])
        assert view.problems == ()
        for entry in view.entries:
            assert entry in list(view.chain(entry.key_hash))
            found.add((entry.key_hash, entry.offset))
    assert found


def test_bytes_that_repeat_the_last_offset_do_not_each_give_a_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged file of one MiB kept a query busy for an hour."""
    header = struct.pack(">qqqqii", 1, 2, 3, 0x0101010101010101, 5, 1000)
    path = tmp_path / "20231114221320007"
    path.write_bytes(header + b"\1" * 100_000)
    asked: list[int] = []

    def agreement(_: IndexReader, slots: int) -> float:
        asked.append(slots)
        return 0.0

    monkeypatch.setattr(IndexReader, "agreement", agreement)
    with IndexReader(IndexFile(path.name, path, path.stat().st_size)) as reader:
        assert reader.settle(None) == ()
    assert 1 < len(asked) < 600
