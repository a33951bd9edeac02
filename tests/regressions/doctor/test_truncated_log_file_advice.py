"""Symptom: a store with one log file that was cut was refused with WrongFileSize.

The message advised the size of the cut file, and a store opened with that size would have made more files of it.
Cause: one file of another size was taken for a store that was written with that size.
Fix: a size that is no multiple of 512 bytes is of no configuration; the file is short or too long, which is damage, and
the store serves what verifies.
"""

from pathlib import Path

import pytest

from tests.support.impl.damaged_logs import FILE_BYTES, bodies, config, filled
from tests.support.impl.stores import open_store


@pytest.mark.parametrize("size", [700, FILE_BYTES - 1, FILE_BYTES + 5])
def test_what_is_left_is_served(size: int, tmp_path: Path) -> None:
    results = filled(tmp_path)
    path = next((tmp_path / "commitlog").iterdir())
    with open(path, "r+b") as file:
        file.truncate(size)
    with open_store(tmp_path, config=config()) as store:
        assert store.read_only_reason is not None
        assert f"{size} bytes instead of {FILE_BYTES}" in store.read_only_reason
        left = [number for number, put in enumerate(results) if put.offset + put.size_bytes <= size]
        assert bodies(store) == [f"{number:03d}".encode() for number in left]
