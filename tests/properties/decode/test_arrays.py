"""Test that the walk in columns equals the plain walk, item for item, on any bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.properties.handmade import blank, golden_dirs, properties_of, record
from tornpage.properties.decode.arrays import TEXTS, Column, LogBatch, Topics, is_compiled, walk_arrays, walker
from tornpage.properties.decode.arrays.plain import full_row
from tornpage.properties.decode.consumequeue import java_hash
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.record import Record
from tornpage.properties.decode.store import look
from tornpage.properties.decode.walk import Item, Source, walk_source


class Bytes:
    """The bytes of a file in memory, as a source."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.end = len(data)

    def read(self, position: int, size_bytes: int) -> bytes:
        return self._data[position : position + size_bytes]

    def next_nonzero(self, position: int) -> int:
        rest = self._data[position:]
        return position + len(rest) - len(rest.lstrip(b"\0"))

    def find(self, needle: bytes, position: int) -> int:
        return self._data.find(needle, position)


def items_of(batches: Iterator[LogBatch]) -> list[tuple[Any, ...]]:
    """Return batches as a list of items: records as all their values, others unchanged."""
    found: list[tuple[Any, ...]] = []
    for batch in batches:
        others = list(batch.others)
        keys = iter(batch.key_hashes.tolist())
        texts = {name: (ends.tolist(), data.tobytes()) for name, (ends, data) in batch.texts.items()}
        for row in range(len(batch) + 1):
            while others and others[0].row == row:
                found.append((others.pop(0).item,))
            if row == len(batch):
                break
            values = batch.table[:, row].tolist()
            values[Column.TOPIC] = batch.topics[values[Column.TOPIC]]
            hashes = [next(keys) for _ in range(values[Column.KEY_COUNT])]
            here = {name: data[ends[row] : ends[row + 1]] for name, (ends, data) in texts.items()}
            found.append((values, hashes, here))
        assert not others
        assert next(keys, None) is None
    return found


def expected(items: Iterator[Item], **wanted: bool) -> list[tuple[Any, ...]]:
    """Return the items of the plain walk as columns."""
    topics = Topics()
    found: list[tuple[Any, ...]] = []
    for item in items:
        if not isinstance(item, Record):
            found.append((item,))
            continue
        row, keys = full_row(item, topics, **wanted)
        row[Column.TOPIC] = item.topic  # type: ignore[call-overload]
        hosts_end = 48 + (20 if item.sys_flag & 0x10 else 8)
        store_end = hosts_end + 8 + (20 if item.sys_flag & 0x20 else 8)
        texts = {
            "body": item.body,
            "born_host": item.raw[48:hosts_end],
            "properties": item.properties,
            "raw": item.raw,
            "store_host": item.raw[hosts_end + 8 : store_end],
        }
        found.append((row, keys, texts))
    return found


def check_equal(
    source: Source, file_bytes: int, base: int = 0, *, drops_joined: bool = False, **how: Any
) -> list[tuple[Any, ...]]:
    """Compare both walks of one file; return the items."""
    wanted = expected(
        walk_source(source, base_offset=base, file_bytes=file_bytes),
        with_properties=True,
        with_keys=True,
        drops_joined=drops_joined,
    )
    how |= {"with_keys": True, "drops_joined": drops_joined, "texts": TEXTS}
    walked = walk_arrays(source, base_offset=base, file_bytes=file_bytes, **how)
    found = items_of(walked)
    assert found == wanted
    return found


def test_walks_are_compiled_here() -> None:
    assert is_compiled()


@pytest.mark.parametrize("case", golden_dirs(), ids=lambda path: path.name)
def test_golden_logs_are_equal_to_the_plain_walk(case: Path) -> None:
    view = look(case / "store")
    for file in view.files:
        with FileSource(file.path, size_bytes_max=view.file_bytes) as source:
            check_equal(source, view.file_bytes, file.base_offset)


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
SCRAPS = st.sampled_from(
    [b"\x01", b"\x02", b" ", b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3", "ü€😀".encode()]
)
NAMES = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "DELAY", "INNER_MULTI_DISPATCH", "TAG", "KEYSX", "__CRC32#", ""])
VALUES = TEXT | st.sampled_from(["3", "12345678901", "007", "+3", "-3", "9" * 5000, "1x", "a b  c", " ", "k1 k1"])
PAIRS = st.builds(lambda name, value: name.encode() + b"\x01" + value.encode(), NAMES, VALUES)
PROPERTIES = st.lists(PAIRS | SCRAPS, max_size=5).map(b"\x02".join) | st.lists(PAIRS | SCRAPS, max_size=5).map(b"".join)


@st.composite
def log_files(draw: st.DrawFn) -> tuple[bytes, int]:
    """Draw a log file of sound records, some damaged afterwards, and its base offset."""
    base = draw(st.sampled_from([0, 1 << 40]))
    stored = b""
    for number in range(draw(st.integers(0, 6))):
        stored += record(
            base + len(stored),
            draw(st.binary(max_size=40)),
            topic=draw(st.sampled_from([b"T", b"TopicTest", b"\xff\xfe", "Thema-ü".encode(), b"x" * 127])),
            properties=draw(PROPERTIES),
            trailer=draw(st.booleans()),
            queue_id=number,
            queue_offset=draw(st.integers(-(2**63), 2**63 - 1)),
            sys_flag=draw(st.sampled_from([0, 4, 8, 12, 3])),
            born_host=draw(st.sampled_from([("2001:db8::1", 1), ("10.0.0.1", 2)])),
            store_host=draw(st.sampled_from([("2001:db8::2", -3), ("10.0.0.2", 4)])),
            prepared_transaction_offset=draw(st.integers(0, 2**62)),
        )
    stored += draw(st.sampled_from([b"", bytes(8), bytes(40), blank(30), b"\xcb\xd4\x31\x94" * 5, b"junk" * 7]))
    data = bytearray(stored)
    for _ in range(draw(st.integers(0, 3))):
        if data:
            at = draw(st.integers(0, len(data) - 1))
            data[at : at + 1] = draw(st.sampled_from([b"\0", b"\1", b"\xff", b"\0" * 9]))[: len(data) - at]
    return bytes(data), base


@given(log_files(), st.sampled_from([1, 2, 7, 100]), st.integers(0, 300), st.booleans())
def test_any_bytes_are_equal_to_the_plain_walk(
    file: tuple[bytes, int], batch_rows: int, missing: int, drops_joined: bool
) -> None:
    data, base = file
    check_equal(Bytes(data), len(data) + 8, base, batch_rows=batch_rows, drops_joined=drops_joined)
    check_equal(Bytes(data[: max(0, len(data) - missing)]), len(data), base, drops_joined=drops_joined)


@pytest.mark.parametrize(("drops_joined", "keys", "tags"), [(False, 2, "a\x01b"), (True, 1, "")])
def test_joined_pairs_are_dropped_if_asked(drops_joined: bool, keys: int, tags: str) -> None:
    stored = record(0, properties=b"UNIQ_KEY\x01u\x02KEYS\x01kWAIT\x01true\x02TAGS\x01a\x01b")
    check_equal(Bytes(stored), len(stored) + 8, drops_joined=drops_joined)
    room = len(stored) + 8
    walked = walk_arrays(Bytes(stored), base_offset=0, file_bytes=room, with_keys=True, drops_joined=drops_joined)
    [batch] = walked
    assert batch[Column.KEY_COUNT].tolist() == [keys]
    assert batch[Column.TAGS_CODE].tolist() == [java_hash(tags)]


@given(log_files(), st.integers(0, 900), st.integers(0, 900))
def test_a_walk_stops_before_the_first_record_behind_its_stop(file: tuple[bytes, int], start: int, stop: int) -> None:
    data, base = file
    source, room = Bytes(data), len(data) + 8
    start = min(start, len(data))
    wanted = []
    for item in walk_source(source, base_offset=base, file_bytes=room, position=start):
        if isinstance(item, Record) and item.offset - base >= stop:
            break
        wanted.append(item)
    batches = list(walk_arrays(source, base_offset=base, file_bytes=room, position=start, stop=stop, with_keys=True))
    found = [item[0] if len(item) == 1 else item[0][Column.OFFSET] for item in items_of(iter(batches))]
    assert found == [item.offset if isinstance(item, Record) else item for item in wanted]


def test_pieces_smaller_than_records_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, stored = random.Random(4), b""
    while len(stored) < 200_000:
        body = rng.randbytes(rng.choice((0, 10, 4000, 9000)))
        stored += record(len(stored), body, trailer=rng.random() < 0.5, properties=properties_of(("TAGS", "a")))
    (tmp_path / "file").write_bytes(stored + bytes(5000))
    monkeypatch.setattr(walker, "PIECE_BYTES", 4096)
    with FileSource(tmp_path / "file", size_bytes_max=1 << 30, piece_bytes=4096) as source:
        check_equal(source, 1 << 30, batch_rows=10)


def test_a_walk_without_the_compiler_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walker, "_compiled", None)
    for case in golden_dirs()[:2]:
        view = look(case / "store")
        for file in view.files:
            with FileSource(file.path, size_bytes_max=view.file_bytes) as source:
                check_equal(source, view.file_bytes, file.base_offset)


def test_more_topics_than_there_is_room_for() -> None:
    stored = b""
    for number in range(700):
        stored += record(len(stored), topic=b"topic-%d" % (number % 600))
    check_equal(Bytes(stored), len(stored) + 8)


def test_more_keys_than_there_is_room_for() -> None:
    keys = properties_of(("KEYS", " ".join(map(str, range(50)))), ("UNIQ_KEY", "u"))
    stored = b""
    for _ in range(5):
        stored += record(len(stored), properties=keys)
    check_equal(Bytes(stored), len(stored) + 8, batch_rows=3)


def test_records_of_several_queues_come_whole() -> None:
    names = properties_of(("INNER_MULTI_DISPATCH", "%LMQ%a"), ("INNER_MULTI_QUEUE_OFFSET", "7"))
    stored = record(0) + record(len(record(0)), properties=names)
    [batch] = walk_arrays(Bytes(stored), base_offset=0, file_bytes=len(stored) + 8)
    assert [(row, found.properties) for row, found in batch.records.items()] == [(1, names)]


def test_a_twin_that_differs_in_one_value_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from tornpage.properties.decode.arrays import records

    right = records.walk_records

    def wrong(*arguments: Any) -> Any:
        answer = right(*arguments)
        arguments[7][Column.STORE_TIMESTAMP, 0] += 1
        return answer

    monkeypatch.setattr(records, "walk_records", wrong)
    stored = record(0)
    with pytest.raises(AssertionError):
        check_equal(Bytes(stored), len(stored) + 8)


def test_a_text_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no such text: bodies; there are body, "):
        next(walk_arrays(Bytes(b""), base_offset=0, file_bytes=0, texts=["bodies"]))


def test_columns_are_numbers_of_64_bits() -> None:
    [batch] = walk_arrays(Bytes(record(0)), base_offset=0, file_bytes=1000)
    assert batch.table.dtype == np.int64
    assert batch.table.shape == (len(Column), 1)
    assert batch[Column.SIZE].tolist() == [len(record(0))]
    assert batch.end == len(record(0))
