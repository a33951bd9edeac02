"""Test the progress reported while a log is read: forwards, from begin to end.

The total is right.
"""

import shutil
from pathlib import Path

import pytest

from tornpage.properties.decode.opening import open_view
from tornpage.properties.inspect import Query, inspect_view
from tornpage.properties.inspect.filemap import file_maps

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
STORE = GOLDEN / "03-rollover-blanks-retention" / "store"


FILES, FILE_BYTES = 9, 16_384
"""Files are read in pieces of some MiB, so each file is one piece here."""


def log_bytes(store: Path) -> int:
    return sum(file.stat().st_size for file in (store / "commitlog").iterdir())


@pytest.mark.parametrize(
    "query",
    [Query(limit=1), Query(topic="nobody"), Query(key="nobody", scan=True), Query(times=(0, 1 << 60), limit=None)],
    ids=["log", "filter", "key", "time"],
)
def test_a_look_at_the_whole_log_tells_every_piece(query: Query) -> None:
    told: list[tuple[int, int]] = []
    seen = inspect_view(STORE, "log", None, query, progress=lambda read, total: told.append((read, total)))
    assert seen == inspect_view(STORE, "log", None, query)
    assert {total for _, total in told} == {log_bytes(STORE)}
    assert told == sorted(told)
    assert sorted({read for read, _ in told}) == [number * FILE_BYTES for number in range(1, FILES + 1)]


def test_a_look_from_a_place_on_counts_from_there() -> None:
    told: list[tuple[int, int]] = []
    begin = min(int(file.name) for file in (STORE / "commitlog").iterdir())
    query = Query(offset=begin + 6 * FILE_BYTES, topic="nobody")
    inspect_view(STORE, "log", None, query, progress=lambda read, total: told.append((read, total)))
    assert sorted(set(told)) == [(number * FILE_BYTES, 3 * FILE_BYTES) for number in (1, 2, 3)]


def test_a_map_of_the_files_tells_how_far_it_is() -> None:
    told: list[int] = []
    view = open_view(STORE)
    assert file_maps(view, progress=lambda read, total: told.append(read)) == file_maps(view)
    assert len(set(told)) == FILES


def test_an_empty_store_has_nothing_to_tell(tmp_path: Path) -> None:
    shutil.copytree(STORE, tmp_path / "store")
    for file in (tmp_path / "store" / "commitlog").iterdir():
        file.unlink()
    told: list[int] = []
    inspect_view(tmp_path / "store", "log", None, Query(), progress=lambda read, total: told.append(read))
    assert told == []
