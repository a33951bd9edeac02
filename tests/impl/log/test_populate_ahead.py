"""Test pages populated ahead of the records: by a service, for asynchronous stores only.

No byte of the log differs.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.hand_runner import HandRunner
from tests.support.impl.stores import SetClock, log_bytes
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.errors import BadConfig
from tornpage.impl.io.files import Mapping
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

PAGE = 4096
FILE_BYTES = 8 * PAGE
MESSAGE = Message("T", bytes(1000), born_timestamp=1)
OF_A_PAGE = Message("T", bytes(4000), born_timestamp=1)


class WatchedFiles(OsFiles):
    """The real disk; it records the populated ranges."""

    def __init__(self) -> None:
        self.populated: list[tuple[int, int]] = []

    def populate(self, mapping: Mapping, position: int, size_bytes: int) -> None:
        """Record the range and populate it."""
        self.populated.append((position, size_bytes))
        super().populate(mapping, position, size_bytes)


class Watched:
    """A store with services that the test steps by hand, on a recorded disk."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self.files = WatchedFiles()
        self.runner = HandRunner(now_ms=1_000)
        wanted: dict[str, Any] = {"mapped_file_size_commit_log": FILE_BYTES, "populate_ahead_bytes": PAGE} | settings
        config = MessageStoreConfig(**wanted)
        self.store = MessageStore.open(
            directory, config, files=self.files, clock=SetClock(), parts=Parts({ThreadRunner: self.runner})
        )

    def put(self, *messages: Message) -> None:
        """Put messages, and step the service once for each wake-up."""
        for message in messages:
            self.put_without_a_step(message)
            if self.wakes:
                self.populate(after_ms=1_000)

    def put_without_a_step(self, *messages: Message) -> None:
        for message in messages:
            assert self.store.put(message).stored

    @property
    def wakes(self) -> int:
        return self.runner["populate"].wakes

    def populate(self, *, after_ms: int = 0) -> None:
        """Step the service."""
        self.runner["populate"].wakes = 0
        assert self.runner.step("populate", after_ms=after_ms) is None


def test_a_put_asks_once_and_populates_nothing_itself(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.put_without_a_step(MESSAGE, MESSAGE, OF_A_PAGE)
    assert (watched.wakes, watched.files.populated) == (1, [])
    watched.store.close()


def test_pages_are_ready_from_the_page_in_use_on_and_more_is_wanted_once_half_is_used(tmp_path: Path) -> None:
    watched = Watched(tmp_path, populate_ahead_bytes=4 * PAGE)
    watched.put_without_a_step(OF_A_PAGE, MESSAGE)  # into the second page
    watched.populate()
    assert watched.files.populated == [(PAGE, 5 * PAGE)]
    watched.put_without_a_step(OF_A_PAGE, OF_A_PAGE)
    assert watched.wakes == 0
    watched.put_without_a_step(OF_A_PAGE)  # past 4 of 6 pages
    assert watched.wakes == 1
    watched.populate(after_ms=60_000)
    assert watched.files.populated[1:] == [(6 * PAGE, 2 * PAGE)]
    watched.store.close()


def test_the_end_of_a_file_is_the_end_and_the_next_file_begins_anew(tmp_path: Path) -> None:
    watched = Watched(tmp_path, populate_ahead_bytes=2 * FILE_BYTES)
    watched.put(*[MESSAGE] * 20)
    assert watched.files.populated == [(0, FILE_BYTES)]
    watched.put(*[MESSAGE] * 20)
    assert watched.store.max_offset > FILE_BYTES
    assert watched.files.populated == [(0, FILE_BYTES)] * 2
    watched.store.close()


def test_a_late_service_begins_at_the_records(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.put(MESSAGE)
    assert watched.files.populated == [(0, 2 * PAGE)]
    watched.put_without_a_step(*[OF_A_PAGE] * 3)
    watched.populate(after_ms=60_000)
    assert watched.files.populated[1:] == [(3 * PAGE, 2 * PAGE)]
    watched.store.close()


def test_fast_puts_have_more_ahead_of_them(tmp_path: Path) -> None:
    """Populate for 50 ms at the speed since the last round: four pages in 100 ms make two."""
    watched = Watched(tmp_path, mapped_file_size_commit_log=64 * PAGE)
    watched.put_without_a_step(MESSAGE)
    watched.populate()
    watched.put_without_a_step(*[Message("T", bytes(4096 - 89 - 1 - 2 - 20))] * 4)
    watched.populate(after_ms=100)
    assert watched.files.populated[1:] == [(4 * PAGE, 3 * PAGE)]
    watched.put_without_a_step(*[OF_A_PAGE] * 4)
    watched.populate(after_ms=0)  # a clock of whole milliseconds may stand still: everything up to the end
    assert sum(watched.files.populated[-1]) == 64 * PAGE
    watched.store.close()


def test_reopened_store_goes_on_in_the_page_in_use(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.put_without_a_step(*[MESSAGE] * 5)
    watched.store.close()
    watched = Watched(tmp_path)
    watched.put(MESSAGE)
    assert watched.files.populated == [(PAGE, 2 * PAGE)]
    watched.store.close()


def test_a_step_without_a_file_does_nothing(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.populate()
    assert watched.files.populated == []
    watched.store.close()


def test_a_file_that_is_given_up_is_left_alone(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.put_without_a_step(MESSAGE)
    watched.store._log.mapped[-1].close()
    watched.populate()
    assert watched.files.populated == []
    watched.store.close()


@pytest.mark.parametrize(
    "settings",
    [
        {"populate_ahead_bytes": 0},
        {"flush_disk_type": FlushDiskType.SYNC_FLUSH},
        {"transient_store_pool_enable": True, "transient_store_pool_size": 1},
    ],
    ids=["off", "synchronous", "pool"],
)
def test_nothing_is_made_ready_where_it_is_not_wanted(settings: dict[str, object], tmp_path: Path) -> None:
    watched = Watched(tmp_path, **settings)
    watched.put_without_a_step(MESSAGE)
    assert "populate" not in watched.runner.services
    watched.store.close()
    assert watched.files.populated == []


def test_bytes_are_the_same_with_and_without(tmp_path: Path) -> None:
    for name, ahead_bytes in (("with", PAGE), ("without", 0)):
        watched = Watched(tmp_path / name, populate_ahead_bytes=ahead_bytes)
        for _ in range(40):
            watched.put_without_a_step(MESSAGE)
            if ahead_bytes:
                watched.populate(after_ms=10)
        watched.store.close()
    assert log_bytes(tmp_path / "with") == log_bytes(tmp_path / "without")


@pytest.mark.parametrize("value", [-4096, 1, 4095, 5000])
def test_step_that_is_no_multiple_of_a_page_is_refused(value: int) -> None:
    with pytest.raises(BadConfig, match="multiple of 4096"):
        MessageStoreConfig(populate_ahead_bytes=value)
