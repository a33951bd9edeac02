"""Test that queue and index files in columns equal the results of their plain readers."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.properties.handmade import golden_dirs
from tornpage.properties.decode.arrays import EntryColumn, UnitColumn, entry_arrays, unit_arrays
from tornpage.properties.decode.consumequeue import EmptyUnits, QueueUnit, list_queues, walk_units
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.index_files import IndexReader, list_index

BASE = 400


def plain(path: Path, position: int, stop: int | None) -> tuple[list[list[int]], list[EmptyUnits]]:
    """Return units and empty runs of a file; the runs are cut at `stop`."""
    units, runs = [], []
    end = path.stat().st_size if stop is None else stop
    with FileSource(path, size_bytes_max=1 << 40) as source:
        for item in walk_units(source, base=BASE, position=position):
            left = end // 20 - (item.queue_offset - BASE // 20)
            if left <= 0:
                break
            if isinstance(item, QueueUnit):
                units.append([item.queue_offset, item.physical_offset, item.size_bytes, item.tags_code])
            else:
                runs.append(EmptyUnits(item.queue_offset, min(item.count, left)))
    return units, runs


def in_columns(
    path: Path, position: int, stop: int | None, batch_units: int
) -> tuple[list[list[int]], list[EmptyUnits]]:
    units: list[list[int]] = []
    runs: list[EmptyUnits] = []
    with FileSource(path, size_bytes_max=1 << 40) as source:
        for batch in unit_arrays(source, base=BASE, position=position, stop=stop, batch_units=batch_units):
            units += batch.table.T.tolist()
            assert batch.is_prefill.tolist() == [QueueUnit(*row).is_prefill for row in batch.table.T.tolist()]
            for run in batch.empty:
                if runs and runs[-1].queue_offset + runs[-1].count == run.queue_offset:
                    run = EmptyUnits(runs[-1].queue_offset, runs.pop().count + run.count)
                runs.append(run)
    return units, runs


UNITS = st.sampled_from([bytes(20), struct.pack(">qiq", 0, 0x7FFFFFFF, 0), struct.pack(">qiq", 9, 8, -7), b"\xff" * 20])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(UNITS, max_size=40), st.integers(0, 9), st.integers(0, 19), st.integers(0, 40), st.integers(1, 50))
def test_units_are_those_of_the_plain_walk(
    tmp_path: Path, units: list[bytes], start: int, cut: int, stop: int, batch_units: int
) -> None:
    path = tmp_path / "queue"
    path.write_bytes(b"".join(units) + bytes(cut))
    for end in (None, 20 * stop):
        assert in_columns(path, 20 * start, end, batch_units) == plain(path, 20 * start, end)


def test_holes_are_hopped_over(tmp_path: Path) -> None:
    path = tmp_path / "queue"
    with path.open("wb") as file:
        file.write(struct.pack(">qiq", 1, 2, 3))
        file.truncate(6_000_000_000)
    with FileSource(path, size_bytes_max=1 << 40) as source:
        batches = list(unit_arrays(source, base=0))
    assert [len(batch) for batch in batches] == [1, 0]
    assert sum(run.count for batch in batches for run in batch.empty) == 300_000_000 - 1


@pytest.mark.parametrize("case", golden_dirs(), ids=lambda path: path.name)
def test_golden_queues_and_indexes_are_those_of_the_plain_readers(case: Path) -> None:
    for file in list_queues(case / "store")[0]:
        assert in_columns(file.path, 0, None, 7) == plain(file.path, 0, None)
    for index in list_index(case / "store")[0]:
        with IndexReader(index) as reader:
            if not reader.settle(None):
                continue
            wanted = [list(reader.entry(number)) for number in range(1, reader.entry_count + 1)]
            slots = reader.slots
        assert slots is not None
        tables = entry_arrays(index, slots=slots, count=len(wanted), batch_entries=50)
        assert [row for table in tables for row in table.T.tolist()] == wanted


def test_columns_have_the_order_of_the_fields() -> None:
    assert list(UnitColumn) == [0, 1, 2, 3]
    assert list(EntryColumn) == [0, 1, 2, 3, 4]
