"""Pages made ready ahead of the records: in steps, for asynchronous stores only, and never a byte of difference."""

from pathlib import Path

import pytest

from impl.config import MessageStoreConfig
from impl.errors import BadConfig
from impl.files import Mapping
from impl.message import Message
from impl.os_files import OsFiles
from impl.policy import FlushDiskType
from impl.store import MessageStore
from tests.impl.support import SetClock, log_bytes

STEP = 4096
FILE_BYTES = 5 * STEP
MESSAGE = Message("T", bytes(1000), born_timestamp=1)


class WatchedFiles(OsFiles):
    """The real disk, and what was asked to be made ready."""

    def __init__(self) -> None:
        self.populated: list[tuple[int, int]] = []

    def populate(self, mapping: Mapping, position: int, size_bytes: int) -> None:
        """Note it and do it."""
        self.populated.append((position, size_bytes))
        super().populate(mapping, position, size_bytes)


def opened(directory: Path, files: WatchedFiles, **settings: object) -> MessageStore:
    config = MessageStoreConfig(mapped_file_size_commit_log=FILE_BYTES, **{"populate_ahead_bytes": STEP, **settings})  # type: ignore[arg-type]
    return MessageStore.open(directory, config, files=files, clock=SetClock())


def test_pages_are_made_ready_in_steps_up_to_the_end_of_each_file(tmp_path: Path) -> None:
    files = WatchedFiles()
    with opened(tmp_path, files) as store:
        for _ in range(3):
            store.put(MESSAGE)
        assert files.populated == [(0, STEP)]
        for _ in range(30):
            store.put(MESSAGE)
        assert store.max_offset > FILE_BYTES
        first = files.populated[:5]
        assert first == [(step * STEP, STEP) for step in range(5)]
        assert files.populated[5] == (0, STEP)


def test_record_over_several_steps_makes_them_ready_at_once(tmp_path: Path) -> None:
    files = WatchedFiles()
    with opened(tmp_path, files) as store:
        store.put(Message("T", bytes(3 * STEP)))
        assert files.populated == [(0, 4 * STEP)]


def test_reopened_store_goes_on_with_the_step_in_use(tmp_path: Path) -> None:
    with opened(tmp_path, WatchedFiles()) as store:
        for _ in range(5):
            store.put(MESSAGE)
    files = WatchedFiles()
    with opened(tmp_path, files) as store:
        store.put(MESSAGE)
    assert files.populated == [(STEP, STEP)]


@pytest.mark.parametrize(
    "settings", [{"populate_ahead_bytes": 0}, {"flush_disk_type": FlushDiskType.SYNC_FLUSH}], ids=["off", "synchronous"]
)
def test_nothing_is_made_ready_where_it_is_not_wanted(settings: dict[str, object], tmp_path: Path) -> None:
    files = WatchedFiles()
    with opened(tmp_path, files, **settings) as store:
        store.put(MESSAGE)
    assert files.populated == []


def test_bytes_are_the_same_with_and_without(tmp_path: Path) -> None:
    for name, step in (("with", STEP), ("without", 0)):
        with opened(tmp_path / name, WatchedFiles(), populate_ahead_bytes=step) as store:
            for _ in range(40):
                store.put(MESSAGE)
    assert log_bytes(tmp_path / "with") == log_bytes(tmp_path / "without")


@pytest.mark.parametrize("value", [-4096, 1, 4095, 5000])
def test_step_that_is_no_multiple_of_a_page_is_refused(value: int) -> None:
    with pytest.raises(BadConfig, match="multiple of 4096"):
        MessageStoreConfig(populate_ahead_bytes=value)
